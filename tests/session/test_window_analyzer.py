"""The window analyzer reads the rate of each window and computes every spectrum once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.session import Session
from phase_rppg.session.window_analyzer import WindowAnalyzer
from phase_rppg.session.window_samples import WindowContext, WindowSamples
from phase_rppg.signal import rate
from phase_rppg.types import Estimate, FloatArray, NoReading, Reason, RgbTrace, Waveform
from plain_face import BLOOD, FPS, SKIN, FixedDetector, ScriptedModel, frames, run, seconds, tone, windows

UNGATED = SessionConfig(method="pos", gated=False)


def samples(blood: FloatArray, start_s: float = 0.0, wave: FloatArray | None = None) -> WindowSamples:
    """A window in which the skin pulsates with `blood` (T,), before a grey background."""
    count = len(blood)
    rng = np.random.default_rng(1)
    valid = np.ones(count, bool)
    skin = SKIN * (1 - 0.01 * blood[:, None] * BLOOD) + rng.normal(0, 0.05, (count, 3))
    background = 90 + rng.normal(0, 0.05, (count, 3))
    network = None if wave is None else Waveform(wave, FPS, start_s, valid)
    return WindowSamples(
        skin=RgbTrace(skin, FPS, start_s, valid),
        background=RgbTrace(background, FPS, start_s, valid),
        centre=rng.normal(0, 1e-4, (count, 2)),
        coverage=1.0,
        face_px=120.0,
        clipped=0.0,
        fps=FPS,
        max_gap_s=1 / FPS,
        end_s=start_s + count / FPS,
        wave=network,
    )


T_S = seconds(10)


def test_a_window_gets_the_rate_of_its_skin() -> None:
    analyzer = WindowAnalyzer(UNGATED)
    window = samples(tone(T_S, 75), start_s=3.0)
    result = analyzer.analyze(4, window, analyzer.extract_wave(window))
    assert isinstance(result.reading, Estimate)
    assert result.reading.bpm == pytest.approx(75, abs=0.3)
    assert (result.face, result.start_s, result.end_s) == (4, 3.0, 13.0)


def test_a_window_with_less_than_two_seconds_of_the_face_has_no_wave() -> None:
    analyzer = WindowAnalyzer(SessionConfig(method="pos"))
    window = samples(tone(T_S, 75))
    window.skin.valid[55:] = False
    wave = analyzer.extract_wave(window)
    assert not wave.valid.any()
    reading = analyzer.analyze(0, replace(window, coverage=55 / 300), wave).reading
    assert isinstance(reading, NoReading)
    assert reading.reason is Reason.FACE_LOST


def test_a_loss_of_the_face_resets_the_gate() -> None:
    """A window that is shown after a confident one is not shown after a loss of the face."""

    def second_reading(lose: bool) -> bool:
        analyzer = WindowAnalyzer(SessionConfig(method="pos"))
        gate = analyzer._gate
        clear, weak = samples(tone(T_S, 75)), samples(tone(T_S, 75), start_s=1.0)
        first = analyzer.analyze(0, clear, analyzer.extract_wave(clear)).reading
        thresholds = replace(gate._calibration.thresholds, ok=0.0, alive=1.0, kept_alive=0.0)
        gate._calibration = replace(gate._calibration, thresholds=thresholds)
        assert isinstance(first, Estimate)
        if lose:
            analyzer.record_loss(10.5)
        return isinstance(analyzer.analyze(0, weak, analyzer.extract_wave(weak)).reading, Estimate)

    assert second_reading(lose=False)
    assert not second_reading(lose=True)


def test_the_weight_of_the_context_grows_with_its_extra_seconds() -> None:
    """Two rates in the window: five extra seconds decide between them, a tenth of a second does not."""

    def bpm(extra_s: float) -> float:
        analyzer = WindowAnalyzer(replace(UNGATED, method="green"))
        window = samples(tone(T_S, 110) + 0.7 * tone(T_S, 72))
        context = WindowContext(samples(tone(seconds(20), 72)), extra_s)
        peak = analyzer.analyze(0, window, analyzer.extract_wave(window), context).peak
        assert peak is not None
        return peak.bpm

    assert bpm(0.1) == pytest.approx(110, abs=1)
    assert bpm(5.0) == pytest.approx(72, abs=1)


Calls = Counter[bytes]


@pytest.fixture
def spectra(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """How often the spectrum of each signal was computed."""
    return counted(monkeypatch, rate, "spectra", lambda columns: columns.T)


@pytest.fixture
def pos_waves(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """How often POS was applied to each colour trace."""
    return counted(monkeypatch, registry.load("methods", "pos"), "extract", lambda trace: [trace.values])


def counted(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, signals: Callable[..., Iterable[FloatArray]]
) -> Calls:
    calls: Calls = Counter()
    original = getattr(owner, name)

    def count(given: object, *args: object, **kwargs: object) -> object:
        calls.update(np.ascontiguousarray(signal).tobytes() for signal in signals(given))
        return original(given, *args, **kwargs)

    monkeypatch.setattr(owner, name, count)
    return calls


# Green, three channels of the background, two coordinates, two halves of the wave; then the waves.
SIGNALS = 1 + 3 + 2 + 2


@pytest.mark.parametrize(
    ("config", "waves"),
    [
        (UNGATED, 2),  # POS and the check method CHROM
        (replace(UNGATED, method="chrom"), 2),  # CHROM and the check method POS
        (replace(UNGATED, model=ScriptedModel(lambda t_s: tone(t_s, 75))), 2),  # network, POS as both
        (replace(UNGATED, model=ScriptedModel(lambda t_s: tone(t_s, 75)), second=None), 2),  # network, check
    ],
    ids=["pos", "chrom", "network", "network alone"],
)
def test_spectra_and_the_pos_wave_are_computed_once_per_window(
    config: SessionConfig, waves: int, spectra: Calls, pos_waves: Calls
) -> None:
    analyzer = WindowAnalyzer(config)
    window = samples(tone(T_S, 75), wave=tone(T_S, 75))
    analyzer.analyze(0, window, analyzer.extract_wave(window))
    assert list(spectra.values()) == [1] * (SIGNALS + waves)
    assert list(pos_waves.values()) == [1]


def test_a_context_adds_one_spectrum_for_each_wave(spectra: Calls, pos_waves: Calls) -> None:
    t_s = seconds(20)
    analyzer = WindowAnalyzer(replace(UNGATED, model=ScriptedModel(lambda t_s: tone(t_s, 75))))
    window = samples(tone(T_S, 75), wave=tone(T_S, 75))
    context = WindowContext(samples(tone(t_s, 75), wave=tone(t_s, 75)), 10.0)
    analyzer.analyze(0, window, analyzer.extract_wave(window), context)
    assert list(spectra.values()) == [1] * (SIGNALS + 2 + 2)
    assert list(pos_waves.values()) == [1, 1]


def test_a_session_computes_no_spectrum_and_no_pos_wave_twice(spectra: Calls, pos_waves: Calls) -> None:
    t_s = seconds(12.1)
    config = replace(UNGATED, model=ScriptedModel(lambda t_s: tone(t_s, 75)))
    results = windows(run(Session(config, FixedDetector()), frames(t_s, 0.01 * tone(t_s, 75))))
    assert len(results) == len(pos_waves) == 3
    assert pos_waves.total() == len(results)
    # A sum, because the channels of the grey background are equal.
    assert spectra.total() == len(results) * (SIGNALS + 2)
