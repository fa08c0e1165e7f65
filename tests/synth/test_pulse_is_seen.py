"""The pixels show the requested rate, amplitude and colour, and no pulse where none is present."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phase_rppg.synth import sample
from phase_rppg.synth.camera import LUT_SIZE, CameraSpec, tone_curve
from phase_rppg.synth.render import frames
from phase_rppg.synth.sample import Sample, draw_scene
from phase_rppg.synth.world import World, load

FPS = 30.0


def skin_trace(one: Sample) -> np.ndarray:
    """Return the mean colour (T,3) of the skin, or of the middle of the crop without perfused skin."""
    mask = one.truth.mask
    if not mask.any():
        mask = np.zeros_like(mask)
        quarter = len(mask) // 4
        mask[quarter:-quarter, quarter:-quarter] = 1
    return (one.pixels * mask[..., None]).sum((1, 2)) / mask.sum()


def peak_bpm(wave: np.ndarray) -> float:
    frequency = np.fft.rfftfreq(1 << 15, 1 / FPS)
    power = np.abs(np.fft.rfft((wave - wave.mean()) * np.hanning(len(wave)), 1 << 15))
    band = (frequency > 0.66) & (frequency < 3.34)
    return float(60 * frequency[band][power[band].argmax()])


def pos(trace: np.ndarray) -> np.ndarray:
    """POS by Wang et al. 2017."""
    window = int(1.6 * FPS)
    out = np.zeros(len(trace))
    for start in range(len(trace) - window + 1):
        c = trace[start : start + window] / trace[start : start + window].mean(0)
        s1, s2 = c[:, 1] - c[:, 2], c[:, 1] + c[:, 2] - 2 * c[:, 0]
        h = s1 + s1.std() / (s2.std() + 1e-12) * s2
        out[start : start + window] += h - h.mean()
    return out


def chrom(trace: np.ndarray) -> np.ndarray:
    """CHROM by De Haan and Jeanne 2013, over the whole clip."""
    r, g, b = (trace / trace.mean(0)).T
    x, y = 3 * r - 2 * g, 1.5 * r + g - 1.5 * b
    return x - x.std() / y.std() * y


@pytest.mark.parametrize("bpm", [54.0, 96.0])
def test_pos_and_chrom_find_the_rate_in_an_easy_world(easy: World, bpm: float) -> None:
    one = sample(easy, 1, 0, seconds=10, size=24, fixed={"pulse.bpm": bpm})
    trace = skin_trace(one)
    truth = peak_bpm(one.truth.wave)
    assert abs(truth - bpm) < 1
    assert abs(peak_bpm(pos(trace)) - truth) < 0.5
    assert abs(peak_bpm(chrom(trace)) - truth) < 0.5


def test_more_blood_is_darker_and_in_step_with_the_truth(easy: World) -> None:
    one = sample(easy, 1, 0, seconds=6, size=24)
    green = skin_trace(one)[:, 1]
    assert np.corrcoef(-green, one.truth.wave)[0, 1] > 0.97
    assert np.all(np.diff(one.truth.beat_times_s) > 0)
    assert abs(one.truth.bpm.mean() - 72) < 1


@pytest.mark.parametrize("amplitude", [0.01, 0.03])
def test_amplitudes_in_linear_light_are_what_was_asked(easy: World, amplitude: float) -> None:
    fixed = {"pulse.amplitude": amplitude, "camera.noise": 0.0, "light.second": 0.0, "frame.face_px": 80.0}
    drawn = draw_scene(easy, 2, 0, 1.5, fixed=fixed)
    actor = drawn.scene.actors[0]
    everywhere = np.ones_like(actor.figure.perfusion)  # no delays, no gloss, no map of perfusion
    bare = replace(actor.figure, perfusion=everywhere, delay_s=0 * everywhere, gloss=0 * everywhere)
    scene = replace(drawn.scene, actors=(replace(actor, figure=bare),))
    curve = tone_curve(CameraSpec(noise=0.0, skin_level=0.4))
    light = np.arange(LUT_SIZE) / (LUT_SIZE - 1)
    linear_of = np.array(
        [light[curve == code].mean() if (curve == code).any() else 0.0 for code in range(256)]
    )
    x, y = (int(c) for c in actor.centre)
    face = np.s_[y - 20 : y + 30, x - 18 : x + 18]
    levels = np.stack([linear_of[f[face]].mean((0, 1)) for f in frames(scene, np.random.default_rng(0))])
    ac_dc = np.ptp(levels, axis=0) / levels.mean(0)
    expected = np.ptp(actor.pulse) * actor.skin.amplitude * actor.skin.pulsation
    np.testing.assert_allclose(ac_dc, expected, rtol=0.1)


def test_darker_skin_shows_less_pulse(easy: World) -> None:
    shown = [
        draw_scene(easy, 3, 0, 1.0, fixed={"subject.fitzpatrick": kind}).conditions["amplitude"]
        for kind in range(1, 7)
    ]
    assert np.all(np.diff(shown) < 0)


@pytest.mark.parametrize(
    "world", ["photo", "mannequin", "wall", "flicker_photo", "nodding_photo", "no_pulse"]
)
def test_no_pulse_worlds_contain_none(world: str) -> None:
    """The same sample drawn for two heart rates has equal pixels, which do not depend on the heart."""
    drawn = [
        sample(load(world), 0, 0, seconds=1.5, size=16, fixed={"pulse.bpm": bpm, "frame.face_px": 48.0})
        for bpm in (60.0, 120.0)
    ]
    np.testing.assert_array_equal(drawn[0].pixels, drawn[1].pixels)
    assert not drawn[0].truth.wave.any()
    assert not drawn[0].truth.bpm.any()
    assert len(drawn[0].truth.beat_times_s) == 0


def test_a_photo_has_no_line_at_a_known_rate(easy: World) -> None:
    photo = sample(easy, 1, 0, seconds=8, size=24, fixed={"subject.kind": "photo"})
    face = sample(easy, 1, 0, seconds=8, size=24)
    carrier = np.exp(2j * np.pi * 1.2 * np.arange(240) / FPS) * np.hanning(240)

    def line(one: Sample) -> float:
        green = skin_trace(one)[:, 1]
        return float(np.abs(((green / green.mean() - 1) * carrier).sum()))

    assert line(photo) < 0.05 * line(face)


def test_a_pulsing_lamp_lights_the_wall_too() -> None:
    fixed = {"light.lamp_bpm": 90.0, "codec.name": "raw", "camera.auto_exposure": 0.0, "frame.face_px": 48.0,
             "motion.kind": "fixed", "motion.handheld": 0.0, "light.strength": 2.0}  # fmt: skip
    one = sample(load("flicker_photo"), 0, 1, seconds=8, size=16, fixed=fixed)
    whole = one.pixels.mean((1, 2))[:, 1]
    assert abs(peak_bpm(whole) - 90) < 2


def test_compression_takes_the_pulse_away(easy: World) -> None:
    """The amplitude at the known rate decreases with coarser quantisation."""
    amplitude = []
    for crf in (10.0, 28.0, 44.0):
        fixed = {
            "codec.name": "h264",
            "codec.crf": crf,
            "camera.noise": 1.0,
            "pulse.amplitude": 0.012,
            "frame.face_px": 64.0,
        }
        one = sample(easy, 4, 0, seconds=5, size=24, fixed=fixed)
        green = skin_trace(one)[:, 1]
        wave = one.truth.wave - one.truth.wave.mean()
        amplitude.append(abs(float((green / green.mean() - 1) @ wave)) / float(wave @ wave))
    assert amplitude[0] > 1.15 * amplitude[2]
    assert amplitude[0] > 0.95 * amplitude[1]
