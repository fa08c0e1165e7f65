"""Properties of the parts of the generator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import InputError
from phase_rppg.face.crop import AreaCrop
from phase_rppg.face.detector import Detector
from phase_rppg.synth import codec, crop, light, motion, random_fields, sample, skin, texture_layers
from phase_rppg.synth.camera import CameraSpec, Sensor, _noise_pool, averaged_noise, frame_times, tone_curve
from phase_rppg.synth.head import make_head
from phase_rppg.synth.portrait import make_portrait
from phase_rppg.synth.render import frames
from phase_rppg.synth.sample import draw_scene
from phase_rppg.synth.warp import Sampler, texture_grid
from phase_rppg.synth.world import World
from phase_rppg.synth.writers.pure import png

T_S = np.arange(60) / 30
seeds = st.integers(0, 2**31)


def head(seed: int, fitzpatrick: int = 2, px_per_h: float = 100.0) -> texture_layers.Figure:
    rng = np.random.default_rng(seed)
    return make_head(skin.make_skin(fitzpatrick, 0.01, 0.1, rng), px_per_h, rng)


@pytest.mark.parametrize("fitzpatrick", range(1, 7))
def test_drawn_heads_look_like_faces_to_the_detector(fitzpatrick: int) -> None:
    one = head(fitzpatrick, fitzpatrick)
    shade = 0.3 + 0.7 * one.normals[2]
    picture = one.albedo * shade * one.alpha + 0.3 * (1 - one.alpha)
    coded = 255 * np.clip(picture / picture.max(), 0, 1) ** (1 / 2.2)
    (found,) = Detector().detect(coded.transpose(1, 2, 0).astype(np.uint8))
    middle = one.shape[0] / 2
    x, y, w, h = found.box
    assert abs(x + w / 2 - middle) < 8
    assert abs(y + h / 2 - middle) < 8
    assert abs(h - 100) < 20


def test_perfusion_has_mean_one_on_the_face_and_none_in_hair_or_background() -> None:
    one = head(3)
    u, v = texture_layers.grid(100.0)
    face = one.perfusion * ((u / 0.36) ** 2 + (v / 0.5) ** 2 < 1)
    assert abs(float((face * one.perfusion).sum() / face.sum()) - 1) < 0.01
    assert abs(float((face * one.delay_s).sum())) < 1e-3 * float(face.sum())
    assert one.perfusion[one.alpha == 0].max() == 0
    assert one.perfusion.min() >= 0


def test_a_resting_head_is_its_texture() -> None:
    one = head(4)
    poses = motion.Poses(T_S[:1])
    middle = (one.shape[1] - 1) / 2
    grid = texture_grid(poses, one.shape, (middle, middle), one.px_per_h, flat=False)[0]
    seen = Sampler(one.shape, one.shape, one.px_per_h).sample(one.albedo.reshape(3, -1), grid)
    np.testing.assert_allclose(seen[:, 2:-2, 2:-2], one.albedo[:, 2:-2, 2:-2], atol=2e-3)


def test_a_shift_moves_the_face_and_its_box_together() -> None:
    one = head(4)
    poses = motion.Poses(T_S[:2])
    poses.x[1] = 0.1
    middle = (one.shape[1] - 1) / 2
    grid = texture_grid(poses, one.shape, (middle, middle), one.px_per_h, flat=False)
    sampler = Sampler(one.shape, one.shape, one.px_per_h)
    rest, moved = (sampler.sample(one.albedo.reshape(3, -1), g)[:, 60:110] for g in grid)
    np.testing.assert_allclose(moved[:, :, 30:-20], rest[:, :, 20:-30], atol=5e-3)


@settings(deadline=None, max_examples=10)
@given(seeds, st.floats(12, 60), st.floats(0, 0.3), st.floats(0, 0.3))
def test_frame_times_rise_and_cover_the_clip(seed: int, fps: float, jitter: float, drop: float) -> None:
    spec = CameraSpec(fps=fps, jitter=jitter, drop=drop, repeat=0.1)
    t_s, source = frame_times(spec, 3.0, np.random.default_rng(seed))
    assert np.all(np.diff(t_s) > 0)
    assert t_s[0] <= 0
    assert t_s[-1] >= 3.0 - 1e-9
    assert np.all(source <= np.arange(len(t_s)))
    assert np.all(np.diff(source) >= 0)


@settings(deadline=None, max_examples=8)
@given(seeds, st.sampled_from(motion.KINDS), st.sampled_from(light.KINDS))
def test_every_motion_and_light_is_finite_and_repeatable(seed: int, kind: str, lamp: str) -> None:
    def make() -> tuple[motion.Poses, light.Light]:
        rng = np.random.default_rng(seed)
        still = np.zeros(len(T_S))
        return (
            motion.make_poses(motion.MotionSpec(kind), T_S, still, still, rng),
            light.make_light(light.LightSpec(lamp), T_S, rng),
        )

    (poses, lamps), (again, _) = make(), make()
    for name in motion.NAMES:
        track = getattr(poses, name)
        assert np.isfinite(track).all()
        np.testing.assert_array_equal(track, getattr(again, name))
    assert np.abs(poses.yaw).max() < 1.5
    assert lamps.key.min() > 0


@settings(deadline=None, max_examples=10)
@given(st.integers(2, 40), st.integers(2, 60), st.booleans())
def test_interpolation_keeps_constants_and_ends(nodes: int, outputs: int, smooth: bool) -> None:
    matrix = random_fields.interpolation(outputs, nodes, smooth)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-6)
    values = np.arange(nodes, dtype=np.float32)
    stretched = matrix @ values
    assert abs(stretched[0]) < 1e-5
    assert abs(stretched[-1] - (nodes - 1)) < 1e-4


def test_the_crop_holds_still_inside_its_dead_zone_and_follows_beyond() -> None:
    boxes = np.tile([100.0, 100.0, 74.0, 100.0], (90, 1))
    boxes[30:, 0] += 2.0
    boxes[60:, 0] += 30.0
    spec = crop.CropSpec(jitter=0.0, offset=0.0, dead_zone=0.05, smoothing=1.0)
    where = crop.detected_squares(spec, boxes, np.arange(90) / 30, np.random.default_rng(0))
    assert np.ptp(where[:60], axis=0).max() == 0
    assert where[-1, 0] - where[0, 0] == pytest.approx(32)
    assert where[0, 2] == pytest.approx(125)


def test_on_clock_returns_frames_at_their_own_times_and_means_between() -> None:
    t_s = np.array([0.0, 0.1, 0.3])
    crops = np.stack([np.full((2, 2, 3), v, np.float32) for v in (10, 20, 40)])
    out = crop.resample_crops(t_s, crops, np.array([0.0, 0.1, 0.2, 0.3]))
    assert out[:, 0, 0, 0].tolist() == [10, 20, 30, 40]


def test_sensor_noise_has_the_strength_that_was_asked() -> None:
    spec = CameraSpec(noise=2.0)
    sensor = Sensor(spec, (64, 64), np.random.default_rng(0))
    pictures = np.stack([sensor.expose(np.full((3, 64, 64), 0.2, np.float32)) for _ in range(20)]).astype(
        float
    )
    assert pictures.std(0).mean() == pytest.approx(2.0, rel=0.15)
    assert np.all(np.diff(tone_curve(spec).astype(int)) >= 0)


@pytest.mark.parametrize("spec", [codec.CodecSpec("h264", crf=18), codec.CodecSpec("mjpeg", quality=3)])
def test_codecs_return_every_frame_in_order(spec: codec.CodecSpec) -> None:
    frames = [np.full((32, 48, 3), 20 * k + 30, np.uint8) for k in range(9)]
    decoded = list(codec.transcode(frames, spec))
    assert len(decoded) == 9
    for sent, received in zip(frames, decoded, strict=True):
        assert np.abs(received.astype(int) - sent).max() < 8


def test_portraits_become_people(easy: World, tmp_path: Path) -> None:
    one = head(2, px_per_h=110.0)
    picture = 255 * np.clip(one.albedo * one.normals[2] * one.alpha + 0.2 * (1 - one.alpha), 0, 1) ** (
        1 / 2.2
    )
    (tmp_path / "a.png").write_bytes(png(picture.transpose(1, 2, 0).astype(np.uint8)))
    made = make_portrait(tmp_path, 80.0, np.random.default_rng(0))
    u, v = texture_layers.grid(80.0)
    assert made.skin[(np.abs(u) < 0.05) & (np.abs(v + 0.25) < 0.04)].mean() > 0.5  # the forehead
    assert made.skin[(np.abs(u) > 0.8) & (v < 0)].max() < 0.05
    face = (np.abs(u) < 0.32) & (np.abs(v) < 0.39)
    assert made.blink.any()
    assert abs(made.blink[:, face].mean()) < 0.025 * made.albedo[:, face].mean()  # a blink is no flash
    clip = sample(easy, 0, 0, seconds=0.3, size=24, faces=tmp_path)
    assert dict(clip.truth.conditions)["face"] == "a.png"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no portraits"):
        make_portrait(tmp_path / "empty", 80.0, np.random.default_rng(0))
    (tmp_path / "grey").mkdir()
    (tmp_path / "grey" / "b.png").write_bytes(png(np.full((64, 64, 3), 90, np.uint8)))
    with pytest.raises(InputError, match="no face"):
        make_portrait(tmp_path / "grey", 80.0, np.random.default_rng(0))


@pytest.mark.parametrize(("size_px", "pixels"), [(0.1, 3.0), (0.8, 2.5), (1.2, 1.5)])
def test_averaged_noise_predicts_the_noise_of_a_crop(size_px: float, pixels: float) -> None:
    pool = _noise_pool(CameraSpec(noise_size_px=size_px), (200, 200), np.random.default_rng(0))[0]
    side = int(200 / pixels)
    box = (0.0, 0.0, side * pixels, side * pixels)
    seen = AreaCrop(box, side, (200, 200, 3)).mean(np.repeat(pool[:200, :200, None], 3, axis=2))
    # A crop averages from whole and from fractional pixels; the prediction is for one that starts on a pixel.
    assert seen.std() / pool.std() == pytest.approx(averaged_noise(size_px, pixels), rel=0.12)


def test_a_smaller_rendering_has_the_noise_and_the_pulse_of_a_large_one(easy: World) -> None:
    """Without a codec, a large face is rendered smaller; clips keep the pulse and the noise on average.

    The maps of a face are drawn at its resolution, so the same seed gives two different faces.
    """
    seen = np.array([[_pulse_and_noise(easy, index, size) for size in (24, None)] for index in range(12)])
    pulse, noise = np.log(seen[:, 0] / seen[:, 1]).T
    assert abs(pulse.mean()) < 0.1
    assert abs(noise.mean()) < 0.1


def _pulse_and_noise(world: World, index: int, clip_size: int | None) -> tuple[float, float]:
    """Return the amplitude of the pulse and the noise of a pixel in a crop of 24 px."""
    seen = []
    for level in (0.0, 3.0):
        fixed = {"frame.face_px": 180.0, "camera.noise": level, "camera.noise_size_px": 0.8}
        drawn = draw_scene(world, 0, index, 1.0, fixed=fixed, clip_size=clip_size)
        assert (drawn.scene.shape[0] < 80) == (clip_size is not None)
        spec, t_s = replace(drawn.crop, lock=True, along=False), drawn.scene.t_s
        boxes = crop.true_boxes(drawn.scene.actors[0])
        where = crop.detected_squares(spec, boxes, t_s, np.random.default_rng(0))
        pictures = frames(drawn.scene, np.random.default_rng(1))
        seen.append(crop.crop_frames(spec, pictures, where, t_s, 24)[:, 4:20, 4:20, 1])
    # Noise dithers the rounding to 8 bits, so that the pulse of the noisy clip is exact.
    return float(seen[1].mean((1, 2)).std()), float(np.diff(seen[1] - seen[0], axis=0).std())


@pytest.mark.parametrize("preset", ["medium", "fast", "faster", "veryfast"])
def test_an_economical_encoder_leaves_the_same_picture(easy: World, preset: str) -> None:
    pictures = list(frames(draw_scene(easy, 0, 0, 1.0).scene, np.random.default_rng(0)))
    spec = codec.CodecSpec("h264", crf=23, preset=preset)
    sent = np.stack(pictures).astype(float)
    full, short = (
        np.stack(list(codec.transcode(pictures, spec, economical=short))).astype(float)
        for short in (False, True)
    )
    errors = [((one - sent) ** 2).mean() for one in (full, short)]
    unchanged = [(np.diff(one, axis=0) == 0).mean() for one in (full, short)]
    assert errors[1] == pytest.approx(errors[0], rel=0.15)
    assert unchanged[1] == pytest.approx(unchanged[0], abs=0.08)
    # The two may be equal here; `test_economical` requires all its clips of `wild` to differ.
