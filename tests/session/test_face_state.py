"""The buffers of a face: interpolated samples, a bounded memory, and the wave that windows add up to."""

from __future__ import annotations

import numpy as np
import pytest

from drawing import Actor, Film, clock
from phase_rppg.face.crop import AreaCrop, square
from phase_rppg.face.detector import Detector
from phase_rppg.session.clock import Clock
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.face_state import FaceState
from phase_rppg.session.session import Session
from phase_rppg.session.skin_sampler import COLUMNS
from phase_rppg.types import ByteArray, FloatArray, Waveform

FACE_REGION = (slice(None), slice(9, -9), slice(9, -9))  # of the crops: the face without the background
CONFIG = SessionConfig(window_s=4.0)


def state_at(times_s: FloatArray, config: SessionConfig = CONFIG) -> FaceState:
    """A state whose samples equal the time and whose crops equal the tick; background from second 1 on."""
    timing = Clock(config.fps, 100.0)
    state = FaceState(timing, 0, config)
    for t_s in times_s.tolist():
        step = timing.advance(t_s)
        background = None if t_s < 1 else np.full(3, 50.0)
        state.append(step, np.full(len(COLUMNS), t_s), background, np.full((36, 36, 3), 30 * t_s, np.float32))
    return state


def test_samples_are_interpolated_to_the_ticks() -> None:
    state = state_at(np.arange(0, 3, 0.045))
    samples = state.samples(0, 60)
    np.testing.assert_allclose(samples.skin.values[:, 1], np.arange(60) / 30, atol=1e-9)
    assert samples.skin.valid.all()
    assert samples.background is not None
    assert not samples.background.valid[:29].any()
    assert samples.background.valid[32:].all()
    assert samples.face_px == pytest.approx(59 / 60)
    assert samples.fps == pytest.approx(1 / 0.045)
    assert samples.end_s == 2.0


def test_the_memory_is_bounded() -> None:
    state = state_at(np.arange(0, 20, 1 / 30))
    assert state.stop_tick == 600
    assert state.stop_tick - state.first_tick == CONFIG.keep_ticks
    assert state.samples(0, 30).coverage == 0


def test_an_absence_and_a_late_notice_of_a_loss_are_invalid() -> None:
    state = state_at(np.arange(0, 2, 1 / 30))
    state.append_absence(state.clock.advance(2.0))
    assert state.last_crop is None
    np.testing.assert_array_equal(state.samples(50, 61).skin.valid, np.arange(50, 61) < 60)
    state.invalidate_after(1.8)
    np.testing.assert_array_equal(state.samples(50, 61).skin.valid, np.arange(50, 61) <= 54)


def test_a_context_ends_where_the_face_was_seen() -> None:
    state = state_at(np.arange(0, 4, 1 / 30))
    context = state.context(60, 90, 300)
    assert context is not None
    assert len(context.samples.skin.valid) == 120
    assert context.extra_s == pytest.approx(3)
    assert state.context(0, 120, 300) is None


def test_each_part_of_the_wave_is_returned_once() -> None:
    state = state_at(np.arange(0, 2, 1 / 30))
    state.add_wave(0, np.arange(60.0), np.ones(60))
    first, second = state.next_wave(20), state.next_wave(45)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(np.concatenate([first.values, second.values]), np.arange(45.0))
    assert state.next_wave(45) is None
    np.testing.assert_array_equal(state.recent_wave(0.5).values, np.arange(45.0, 60.0))


def test_windows_of_different_scale_add_up_to_one_wave() -> None:
    state = state_at(np.arange(0, 4, 1 / 30))
    wave = np.sin(2 * np.pi * 1.2 * np.arange(120) / 30)
    for first, scale in ((0, 1.0), (25, 9.0), (50, 0.2)):  # 25 ticks are one period
        part = scale * wave[first : first + 50]
        state.overlap_add(first, Waveform(part, 30.0, first / 30, np.ones(50, bool)))
    known = state.wave(0, 100)
    assert known.valid.all()
    np.testing.assert_allclose(known.values, wave[:100] / wave[:50].std(), atol=1e-9)


def test_the_clip_repeats_the_first_crop_before_the_face_appeared() -> None:
    state = state_at(np.arange(0, 4, 1 / 30), SessionConfig(method="2sr", window_s=4.0))
    clip = state.samples(-10, 50).clip
    assert clip is not None
    assert clip.pixels.shape == (60, 36, 36, 3)
    np.testing.assert_array_equal(clip.valid, np.arange(-10, 50) >= 0)
    np.testing.assert_array_equal(clip.pixels[:, 0, 0, 0], np.maximum(np.arange(-10, 50), 0))


class CropRecorder:
    """A network that keeps all crops it is given; its copies share one list."""

    name, fps, size, delay_frames = "crop-recorder", 30.0, 36, 0

    def __init__(self, crops: list[ByteArray]) -> None:
        self.crops = crops

    def fresh(self) -> CropRecorder:
        return CropRecorder(self.crops)

    def step(self, crops: ByteArray) -> FloatArray:
        self.crops.extend(crops)
        return np.zeros(len(crops))


def test_crops_follow_a_face_that_moves() -> None:
    """Measured: 18 % of the variation in a crop that does not move."""
    actor = Actor(lambda t: (100 + 6 * np.sin(np.pi * t), 80 + 3 * np.sin(2 * np.pi * t)), 80, amplitude=0.0)
    frames = list(Film((actor,), clock(5), height=160, width=200, noise=1.0).frames())
    detector, crops = Detector(), list[ByteArray]()
    session = Session(SessionConfig(model=CropRecorder(crops)), detector)
    for frame in frames:
        session.push(frame)
    session.finish()
    (face,) = detector.detect(frames[0].rgb)
    fixed_crop = AreaCrop(square(face.box), CropRecorder.size, frames[0].rgb.shape)
    fixed = np.stack([fixed_crop.mean(frame.rgb) for frame in frames])
    following = np.stack(crops).astype(float)
    assert len(following) == len(frames)
    assert following[FACE_REGION].std(0).mean() < 0.3 * fixed[FACE_REGION].std(0).mean()


def test_the_recent_path_is_the_motion_of_the_face() -> None:
    actor = Actor(lambda t: (100 + 6 * np.sin(np.pi * t), 80 + 3 * np.sin(2 * np.pi * t)), 80, amplitude=0.0)
    session = Session(SessionConfig(model=CropRecorder([])))
    frames = list(Film((actor,), clock(5), height=160, width=200, noise=1.0).frames())
    for frame in frames:
        session.push(frame)
    (face,) = session.present
    path = face.state.recent_path(3.0)  # (90,2)
    t_s = np.array([frame.t_s for frame in frames])[-len(path) :]
    true = np.stack([6 * np.sin(np.pi * t_s), 3 * np.sin(2 * np.pi * t_s)], 1) / face.track.box[2]
    assert path.shape == (90, 2)
    error = (path - path.mean(0)) - (true - true.mean(0))
    assert np.abs(error).max() < 0.15 * np.ptp(true)
    assert len(face.state.recent_path(1.0)) == 30
    assert np.array_equal(face.state.recent_path(1.0), path[-30:])
