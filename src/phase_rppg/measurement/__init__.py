"""Run sessions: on a file, a camera, a batch of files; collect and summarise their results."""
