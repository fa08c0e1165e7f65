"""Faces in pictures: where they are, who is who over time, and how to cut them out."""
