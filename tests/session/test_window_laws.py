"""The rate of a window combines both waves; its support is that of the network; its context has a weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import WindowResult
from phase_rppg.session.session import Session
from phase_rppg.signal import rate
from phase_rppg.types import FloatArray, Frame
from plain_face import FPS, FixedDetector, ScriptedModel, frames, run, seconds, tone, windows

T_S = seconds(10.1)
NOISE = np.random.default_rng(0).normal(size=(2, 1000))


def first_window(config: SessionConfig, source: list[Frame]) -> WindowResult:
    return windows(run(Session(config, FixedDetector()), source))[0]


def noise_at(t_s: FloatArray) -> FloatArray:
    return NOISE[0][np.rint(t_s * FPS).astype(int)]


def test_the_rate_is_the_inverse_variance_mean_of_network_and_second_method() -> None:
    """The network shows 71 bpm in noise, the skin 74 bpm in less noise."""
    model = ScriptedModel(lambda t_s: tone(t_s, 71) + noise_at(t_s))
    skin = frames(T_S, 0.01 * (tone(T_S, 74) + 0.5 * NOISE[1][: len(T_S)]))
    both = SessionConfig(model=model, gated=False)
    together = first_window(both, skin).peak
    network = first_window(replace(both, second=None), skin).peak
    second = first_window(SessionConfig(method="pos", gated=False), skin).peak
    assert together is not None
    assert network is not None
    assert second is not None
    assert second.bpm - network.bpm > 2
    assert together.bpm == pytest.approx(rate.joint_bpm([network, second]), abs=0.05)


def test_support_is_that_of_the_network_alone() -> None:
    """A network that outputs noise does not support a rate that only the second method shows."""
    both = SessionConfig(model=ScriptedModel(noise_at), gated=False)
    skin = frames(T_S, 0.01 * tone(T_S, 74))
    window = first_window(both, skin)
    assert window.peak is not None
    assert window.peak.bpm == pytest.approx(74, abs=1)
    assert first_window(SessionConfig(method="pos", gated=False), skin).quality.support > 0.9
    assert window.quality.support < 0.4


def rate_in_context(own: FloatArray, context: FloatArray) -> float:
    """The rate of a window of 10 s that shows `own`, followed by 10 s of `context`."""
    t_s = seconds(20)
    blood = 0.01 * np.where(t_s < 10, own, context)
    config = SessionConfig(method="green", gated=False, context_s=10.0)
    peak = first_window(config, frames(t_s, blood)).peak
    assert peak is not None
    return peak.bpm


def test_a_clear_peak_of_the_window_outweighs_a_stronger_context() -> None:
    t_s = seconds(20)
    assert rate_in_context(tone(t_s, 110), 1.5 * tone(t_s, 72)) == pytest.approx(110, abs=1)


def test_the_context_decides_between_two_peaks_of_the_window() -> None:
    t_s = seconds(20)
    own = tone(t_s, 110) + 0.7 * tone(t_s, 72)
    assert rate_in_context(own, 1.5 * tone(t_s, 72)) == pytest.approx(72, abs=1)
    assert rate_in_context(own, 0 * t_s) == pytest.approx(110, abs=1)
