"""Fuzzing of the parsers of phase-rppg. Run `python -m fuzz`."""
