"""Videos, image sequences and cameras: pictures with the time they were taken, and back into files."""
