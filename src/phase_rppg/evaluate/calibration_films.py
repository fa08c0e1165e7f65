"""The films that `phase calibrate` uses by default: ordinary videos, and films without a pulse.

Each entry is `WORLD:COUNT` with optional settings, as `phase calibrate --world` reads it. Lengths are used in
turn, so that the gate is fitted to short clips and to long recordings.
"""

from __future__ import annotations

SECONDS = (10.5, 14.0, 8.5, 12.0, 20.0, 11.0, 10.5, 30.0)
WORLDS = (
    # ordinary videos
    "handheld:24", "laptop:24", "talk:24", "wild:16", "webcam:16", "phone:16", "studio:14", "coded:12",
    "street:10", "motion:8", "lux:8", "faint:6",
    # rhythms that a single spectral line does not describe
    "studio:8,pulse.irregular=0.2", "webcam:6,pulse.irregular=0.15", "handheld:6,pulse.irregular=0.25",
    "phone:4,pulse.ectopic_rate=0.1", "studio:4,pulse.step_factor=1.5,pulse.step_s=6",
    "webcam:4,pulse.step_factor=0.6,pulse.step_s=6",
    "studio:6,pulse.bpm=80,pulse.step_factor=0.5,pulse.step_s=6",
    # no pulse
    "flicker_face:64", "photo:16", "mannequin:10", "wall:2", "no_pulse:14", "flicker_photo:20",
    "nodding_photo:16", "handheld:12,pulse.present=false", "laptop:12,pulse.present=false",
    "talk:12,pulse.present=false", "wild:6,pulse.present=false", "coded:6,pulse.present=false",
)  # fmt: skip
