"""Benchmarks: `python -m benchmarks` measures speed and memory; the other files are studies of accuracy."""
