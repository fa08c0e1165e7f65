"""The worlds of ordinary home videos have the properties that their recipes promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from phase_rppg.errors import RecipeError, UnknownNameError
from phase_rppg.synth import camera, motion, sample
from phase_rppg.synth.codec import CodecSpec, transcode
from phase_rppg.synth.render import frames
from phase_rppg.synth.sample import draw_scene
from phase_rppg.synth.subjects import smooth_skin
from phase_rppg.synth.warp import texture_grid
from phase_rppg.synth.world import PulseSpec, World, load, parse_setting
from phase_rppg.synth.writers import RecordingJob, write_recordings

T_S = np.arange(600) / 30
HOME = ("handheld", "laptop", "talk")
TRAINING = ("wild", "webcam", "street", "faint", "coded", *HOME)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Light on the face alone


def modulation(trace: np.ndarray, t_s: np.ndarray, bpm: float) -> np.ndarray:
    """Return the relative amplitude (3,) of a trace (T,3) at one rate."""
    window = np.hanning(len(t_s))
    carrier = window * np.exp(-2j * np.pi * bpm / 60 * t_s)
    return np.abs(carrier @ (trace / trace.mean(0) - 1)) * 2 / window.sum()


def lit_face(**light: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the modulation (3,) of the face and of the background at the rate of the lamp."""
    fixed = {
        "light.lamp_bpm": 72.0, "light.lamp_depth": 0.02, "subject.kind": "person", "motion.kind": "fixed",
        "camera.noise": 0.0, "camera.auto_exposure": 0.0, "camera.skin_level": 0.3, "codec.name": "raw",
        "frame.face_px": 90.0, "frame.background": "plain", "camera.fps": 30.0, "light.lamp_tint": 0.0,
        **{f"light.{key}": value for key, value in light.items()},
    }  # fmt: skip
    drawn = draw_scene(load("flicker_face"), 0, 3, 5.0, shape=(160, 240), fixed=fixed)
    pictures = np.stack(list(frames(drawn.scene, rng()))).astype(float)
    x, y = (int(c) for c in drawn.scene.actors[0].centre)
    face = pictures[:, y - 20 : y + 25, x - 20 : x + 20].mean((1, 2))
    corner = pictures[:, :20, :20].mean((1, 2))
    t_s = drawn.scene.t_s
    return modulation(face, t_s, 72), modulation(corner, t_s, 72)


@pytest.mark.parametrize("falloff", [0.0, 2.0])
def test_the_lamp_modulates_the_face_and_not_the_background(falloff: float) -> None:
    face, background = lit_face(falloff=falloff)
    # Display values change by a factor of 1/2.4 to 1 of linear light; shading takes its share.
    assert np.all(face > 0.003)
    assert np.all(face < 0.03)
    assert background.max() < 0.02 * face.min()
    _, spilled = lit_face(falloff=falloff, spill=1.0)
    assert spilled.min() > 0.1 * face.min()


def test_the_lamp_has_the_colour_of_its_tint() -> None:
    white, _ = lit_face()
    orange, _ = lit_face(lamp_tint=1.0)
    blood, _ = lit_face(lamp_blood=1.0)
    assert orange[0] / orange[2] > 1.7 * white[0] / white[2]
    assert blood[0] / blood[1] == pytest.approx(0.33 / 0.77 * white[0] / white[1], rel=0.15)


@pytest.mark.parametrize("world", ["flicker_face", *HOME])
def test_without_a_pulse_the_pixels_do_not_depend_on_the_heart(world: str) -> None:
    fixed = {"pulse.present": False, "frame.face_px": 48.0}
    slow, fast = (
        sample(load(world), 0, 0, seconds=1.0, size=16, fixed={**fixed, "pulse.bpm": bpm})
        for bpm in (60.0, 120.0)
    )
    np.testing.assert_array_equal(slow.pixels, fast.pixels)
    assert not slow.truth.wave.any()


@pytest.mark.parametrize("world", HOME)
def test_a_twin_differs_by_the_pulse_only(world: str) -> None:
    fixed = {"codec.name": "raw", "frame.face_px": 48.0}
    live = sample(load(world), 0, 1, seconds=1.0, size=16, fixed=fixed)
    twin = sample(load(world), 0, 1, seconds=1.0, size=16, fixed={**fixed, "pulse.present": False})
    assert live.truth.wave.any()
    assert not np.array_equal(live.pixels, twin.pixels)
    assert np.abs(live.pixels.astype(int) - twin.pixels).mean() < 2


# Heart rates


@pytest.mark.parametrize("world", TRAINING)
def test_every_training_world_has_fast_hearts(world: str) -> None:
    drawn = [load(world).draw(PulseSpec, rng(seed)).bpm for seed in range(800)]
    assert 0.1 < np.mean(np.array(drawn) >= 150) < 0.3
    assert 40 <= min(drawn) < 46
    assert 210 < max(drawn) <= 220


def test_breathing_moves_the_baseline_of_the_skin_but_not_the_truth(easy: World) -> None:
    calm, deep = (
        draw_scene(easy, 0, 0, 10.0, fixed={"pulse.breathing_baseline": size}) for size in (0.0, 1.0)
    )
    added = deep.scene.actors[0].pulse - calm.scene.actors[0].pulse
    breathing = np.interp(calm.scene.t_s, calm.pulses[0].t_s, calm.pulses[0].breathing)
    np.testing.assert_allclose(added, breathing, atol=1e-9)
    np.testing.assert_array_equal(calm.pulses[0].values, deep.pulses[0].values)


# Camera


def test_a_laptop_has_irregular_and_repeated_frames() -> None:
    repeated, intervals, rates = [], [], []
    for index in range(30):
        scene = draw_scene(load("laptop"), 0, index, 6.0, fixed={"frame.face_px": 40.0}).scene
        repeated.append(np.mean(np.diff(scene.source) == 0))
        steps_s = np.diff(scene.t_s)
        intervals.append(steps_s.std() / steps_s.mean())
        rates.append(1 / np.median(steps_s))
    assert 0.03 < np.mean(repeated) < 0.2
    assert np.mean(intervals) > 0.15
    assert min(rates) > 8
    assert max(rates) < 36
    assert np.ptp(rates) > 8


def test_the_frame_interval_wanders_and_still_covers_the_clip() -> None:
    for seed in range(20):
        t_s, _ = camera.frame_times(camera.CameraSpec(fps_wander=0.4), 6.0, rng(seed))
        steps_s = np.diff(t_s)
        assert steps_s.min() >= 0.89 / 30
        assert t_s[0] <= 0
        assert t_s[-1] >= 6.0
    t_s, _ = camera.frame_times(camera.CameraSpec(fps_wander=0.4), 60.0, rng())
    assert np.diff(t_s).max() > 1.3 / 30


def test_hunting_overshoots_and_settles() -> None:
    spec = camera.CameraSpec(hunting=1.0)
    gains = np.log([camera.exposure(spec, T_S, rng(seed)) for seed in range(8)])
    assert 0.01 < gains.std() < 0.2
    changed = np.abs(np.diff(gains[:, :, 1], axis=1)) > 1e-9
    assert 0.1 < changed.mean() < 0.95  # the control holds its value between two steps
    assert np.abs(gains[..., 0] - gains[..., 2]).max() > 0.003  # white balance


def test_local_tone_mapping_reduces_the_contrast_between_regions_and_keeps_constants() -> None:
    half = np.full((3, 96, 96), 0.1, np.float32)
    half[:, :, 48:] = 0.6
    even = np.full((3, 96, 96), 0.2, np.float32)
    for picture in (half, even):
        camera.LocalTone(0.8, (96, 96)).apply(picture)
    assert half[:, :, -8:].mean() / half[:, :, :8].mean() < 4
    np.testing.assert_allclose(even, 0.2, rtol=1e-5)


def test_smoothed_skin_keeps_eyes_and_loses_texture(easy: World) -> None:
    figure = draw_scene(easy, 0, 0, 0.5, shape=(320, 320)).scene.actors[0].figure
    smooth = smooth_skin(figure, 0.9)
    np.testing.assert_array_equal(smooth.albedo[:, figure.skin < 0.5], figure.albedo[:, figure.skin < 0.5])
    detail = [np.diff(np.where(figure.skin > 0.99, one.albedo[1], np.nan)) for one in (figure, smooth)]
    assert np.nanstd(detail[1]) < 0.6 * np.nanstd(detail[0])


# Motion


def test_a_hand_trembles_and_its_rolling_shutter_skews_the_face() -> None:
    shaken = []
    for seed in range(10):
        spec = motion.MotionSpec("still", strength=0.0, breathing=0.0, tremor=0.002)
        poses = motion.make_poses(spec, T_S, 0 * T_S, 0 * T_S, rng(seed))
        spectrum = np.abs(np.fft.rfft(poses.camera_x - poses.camera_x.mean())) ** 2
        hz = np.fft.rfftfreq(len(T_S), 1 / 30)
        shaken.append((poses.camera_x.std(), spectrum[hz > 4].sum() / spectrum.sum()))
    amplitude, fast = np.mean(shaken, axis=0)
    assert amplitude == pytest.approx(0.002 * np.sqrt(2), rel=0.35)
    assert fast > 0.2
    motion.add_rolling_shutter(poses, 0.01)
    at = int(np.argmax(np.abs(poses.skew_x)))
    one = poses.part(slice(at, at + 1))
    skewed, straight = (
        texture_grid(pose, (161, 161), (80.0, 80.0), 100.0, flat=True)[0, 1] for pose in (one, _straight(one))
    )
    # Rows above and below the centre move in opposite directions; the centre stays.
    shift = (skewed - straight)[:, 10]
    assert shift[0] == pytest.approx(-shift[-1], rel=1e-3)
    assert abs(shift[-1]) == pytest.approx(abs(0.8 * poses.skew_x[at]), rel=1e-2)
    assert abs(shift[len(shift) // 2]) < 1e-6


def _straight(poses: motion.Poses) -> motion.Poses:
    straight = poses.part(slice(None))
    straight.skew_x, straight.skew_y = np.zeros(len(poses.t_s)), np.zeros(len(poses.t_s))
    return straight


def test_people_who_talk_move_jaw_brows_and_lips() -> None:
    moved = []
    for index in range(12):
        poses = draw_scene(load("talk"), 0, index, 12.0, fixed={"frame.face_px": 40.0}).scene.actors[0].poses
        moved.append([np.ptp(getattr(poses, name)) for name in ("jaw", "brow", "smile")])
    assert np.min(moved, axis=0)[0] > 0.2
    assert np.all(np.mean(np.array(moved) > 0.05, axis=0) > 0.6)


# Codecs


@pytest.mark.parametrize("name", ["hevc", "mpeg4"])
def test_the_codecs_of_phones_and_webcams_return_every_frame(name: str) -> None:
    pictures = [np.full((64, 64, 3), 10 * k + 30, np.uint8) for k in range(9)]
    decoded = list(transcode(pictures, CodecSpec(name, crf=18, quality=3)))
    assert len(decoded) == 9
    for sent, received in zip(pictures, decoded, strict=True):
        assert np.abs(received.astype(int) - sent).max() < 8


def test_a_phone_writes_an_upright_video_with_its_bits_per_pixel(tmp_path: Path) -> None:
    for name, suffix in (("h264", "mp4"), ("hevc", "mp4"), ("mpeg4", "mp4")):
        fixed = {"codec.name": name, "codec.bpp": 0.2, "camera.noise": 2.0, "camera.fps": 30.0}
        job = RecordingJob("video", str(tmp_path / name), "handheld", 2.0, 240, 0, None, fixed)
        write_recordings(job, 1)
        (video,) = (tmp_path / name).glob(f"*.{suffix}")
        with av.open(str(video)) as opened:
            stream = opened.streams.video[0]
            assert stream.codec_context.name == name
            assert (stream.height, stream.width) == (240, 2 * round(240 * 9 / 32))
            bits = 8 * sum(packet.size for packet in opened.demux(stream))
            if name != "mpeg4":  # its quantiser is constant
                assert 0.5 < bits / (0.2 * stream.height * stream.width * 60) < 2


# Settings


def test_a_setting_is_read_with_the_type_of_its_key() -> None:
    assert parse_setting("pulse.present=false") == ("pulse.present", False)
    assert parse_setting("pulse.bpm = 55") == ("pulse.bpm", 55.0)
    assert parse_setting("codec.name=hevc") == ("codec.name", "hevc")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("puls.bpm=60", UnknownNameError), ("pulse.bmp=60", UnknownNameError),
        ("codec.name=h265", UnknownNameError), ("pulse.bpm", RecipeError), ("pulse.bpm=fast", RecipeError),
        ("pulse.bpm=nan", RecipeError), ("pulse.present=maybe", RecipeError),
        ("pulse.present=1", RecipeError),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_setting(text)


def test_a_step_beyond_the_accepted_rates_is_limited() -> None:
    """250 / bpm * bpm is more than 250 here, which the configuration of the pulse refuses."""
    fixed = {"pulse.bpm": 160.43438359589896, "pulse.step_factor": 1.6, "codec.name": "raw"}
    assert len(sample(load("wild"), 1, 0, seconds=1, size=36, fixed=fixed).truth.bpm) == 30
