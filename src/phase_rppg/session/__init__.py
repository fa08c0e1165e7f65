"""From frames to readings: one session for files and cameras, and the only gate.

session  push(frame) → windows, pieces of wave, faces     offline  a file is a loop over a session
person   one face: its last window of signals             meter    skin colour and motion of one frame
assess   what a window shows                              decide   a heart rate, or why there is none
"""
