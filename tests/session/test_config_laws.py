"""Laws of the settings: which values are accepted, and the numbers of ticks that follow from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.face.crop import CROP_PX
from phase_rppg.session.config import SessionConfig
from plain_face import ScriptedModel


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_s", 2.0), ("window_s", 300.0), ("step_s", 1 / 30), ("step_s", 10.0), ("context_s", 0.0),
        ("context_s", 60.0), ("fps", 5.0), ("fps", 240.0), ("faces", "all"), ("faces", "largest"),
        ("second", None), ("second", "chrom"),
    ],
)  # fmt: skip
def test_values_up_to_their_limits_are_accepted(field: str, value: Any) -> None:
    assert getattr(SessionConfig(**{field: value}), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_s", 1.99), ("window_s", 300.1), ("window_s", math.nan), ("step_s", 1 / 31),
        ("step_s", 10.1), ("step_s", math.nan), ("context_s", -0.1), ("context_s", 60.1),
        ("context_s", math.nan), ("fps", 4.9), ("fps", 240.1), ("faces", "some"), ("second", "2sr"),
    ],
)  # fmt: skip
def test_values_beyond_their_limits_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ArgumentError):
        SessionConfig(**{field: value})


def test_an_unknown_method_is_refused_and_a_model_needs_none() -> None:
    with pytest.raises(UnknownNameError):
        SessionConfig(method="unknown")
    config = SessionConfig(method="unknown", model=ScriptedModel(np.zeros_like, fps=25, delay_frames=4))
    assert (config.method, config.fps, config.delay_ticks, config.crop_px) == ("scripted", 25.0, 4, 12)
    assert not config.wants_clip


def test_the_ticks_are_seconds_times_the_frame_rate() -> None:
    config = SessionConfig(window_s=8.0, step_s=0.5, context_s=3.0, fps=20.0)
    assert (config.window_ticks, config.step_ticks, config.context_ticks) == (160, 10, 60)
    assert config.delay_ticks == 0
    assert config.keep_ticks == 160 + 2 * 60 + 10 + 2 * 20  # window, context, step and two spare seconds
    delayed = SessionConfig(window_s=8.0, model=ScriptedModel(np.zeros_like, delay_frames=7))
    assert delayed.keep_ticks == 240 + 30 + 7 + 60
    assert SessionConfig(step_s=1 / 30).step_ticks == 1
    assert SessionConfig(step_s=0.3, fps=5.0).step_ticks == 2


def test_a_camera_has_no_context_and_the_same_other_settings() -> None:
    config = SessionConfig(window_s=8.0, step_s=2.0, context_s=10.0, faces="largest")
    assert config.for_camera() == SessionConfig(window_s=8.0, step_s=2.0, context_s=0.0, faces="largest")


def test_only_some_methods_use_crops() -> None:
    assert SessionConfig(method="2sr").wants_clip
    assert not SessionConfig(method="pos").wants_clip
    assert SessionConfig(method="pos").crop_px == CROP_PX
