"""Classical methods, one file each. Each extracts a pulse waveform from a colour trace or a clip of the skin.

A method file defines NAME, CITATION, INPUT ("trace" or "clip") and `extract`. Adding a file adds a method:
`registry.load("methods", name)` finds it, and the contract tests check it. The waveform has the clock of its
input and rises with blood volume.
"""
