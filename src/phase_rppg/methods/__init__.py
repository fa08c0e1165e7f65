"""Classical methods, one file each: a skin trace (or clip) in, a pulse wave on the same clock out.

A method file says NAME, CITATION, INPUT ("trace" or "clip") and defines `extract`. Adding a file adds a
method; `registry.load("methods", name)` finds it, and the contract tests check it. Every wave points up
when blood volume rises.
"""
