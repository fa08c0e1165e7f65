"""The suffixes of video files, for every function that searches a folder."""

VIDEO_SUFFIXES = frozenset(
    {".avi", ".mkv", ".mov", ".mp4", ".m4v", ".mpg", ".mpeg", ".ts", ".webm", ".wmv", ".3gp", ".flv", ".y4m"}
)
