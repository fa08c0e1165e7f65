"""One sample of a world: drawn from (seed, index) alone, rendered, with its truth."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..face.crop import AreaCrop
from ..physics.pulse import Pulse, PulseConfig, pulse_wave
from ..types import ByteArray, FloatArray
from . import camera as cam
from .background import make_background
from .codec import CodecSpec, transcode
from .follow import CropSpec, box_of, cut_out, followed, on_clock, true_boxes
from .light import LightSpec, make_light
from .motion import MotionSpec, make_poses
from .render import Actor, Scene, frames, skin_radiance
from .skin import make_skin
from .subjects import make_subject
from .warp import Sampler, texture_grid
from .world import FrameSpec, PulseSpec, SubjectSpec, World

CLIP_FPS = 30.0
FULL_HEIGHT_PX = 480  # height of the frame that `face_px` of a recipe belongs to
_TURN_S = 1 / 240  # half the step over which the pulse's slope is taken


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What is really going on in a sample, on its own clock."""

    wave: FloatArray  # (T,) blood volume of the face, upstroke positive; all zero without a pulse
    fps: float
    beat_times_s: FloatArray  # (N,) empty without a pulse
    bpm: FloatArray  # (T,) instantaneous rate; zero without a pulse
    mask: FloatArray  # (S,S) 0–1: how much living skin each pixel of the first crop shows
    conditions: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A face clip as the measuring pipeline would cut it, and the truth."""

    pixels: ByteArray  # (T,S,S,3) u8
    truth: Truth


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A scene that is ready to be filmed."""

    scene: Scene
    pulses: tuple[Pulse, ...]
    crop: CropSpec
    codec: CodecSpec
    conditions: Mapping[str, Any]
    has_pulse: bool


def stream(world: World, seed: int, index: int, name: str) -> np.random.Generator:
    """The random numbers of one part of one sample: the same in every process and order."""
    key = [zlib.crc32(world.name.encode()), zlib.crc32(name.encode())]
    return np.random.default_rng([seed, index, *key])


def sample(
    world: World,
    seed: int,
    index: int,
    *,
    seconds: float = 10.0,
    size: int = 64,
    fps: float = CLIP_FPS,
    faces: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Sample:
    """Sample `index` of a world as a clip of square crops on a uniform clock."""
    if seconds <= 0 or size < 8:
        raise ArgumentError("seconds, size", (seconds, size), "a duration above 0 and at least 8 pixels")
    staged = stage(world, seed, index, seconds, faces=faces, fixed=fixed, clip_size=size)
    scene = staged.scene
    pictures = transcode(frames(scene, stream(world, seed, index, "noise")), staged.codec, scene.camera.fps)
    actor = scene.actors[0]
    where = followed(staged.crop, true_boxes(actor), scene.t_s, stream(world, seed, index, "follow"))
    crops = cut_out(staged.crop, pictures, where, scene.t_s, size)
    clock_s = np.arange(round(seconds * fps)) / fps
    pixels = on_clock(scene.t_s, crops, clock_s)
    return Sample(pixels, truth_of(staged, clock_s, fps, skin_mask(actor, scene.shape, where[0], size)))


def truth_of(staged: Staged, clock_s: FloatArray, fps: float, mask: FloatArray, person: int = 0) -> Truth:
    """The truth of one person on a uniform clock."""
    pulse = staged.pulses[person]
    if not staged.has_pulse:
        nothing = np.zeros(len(clock_s), np.float32)
        return Truth(nothing, fps, np.zeros(0), nothing, np.zeros_like(mask), staged.conditions)
    bpm = np.interp(clock_s, pulse.t_s, pulse.bpm)
    wave = pulse.at(clock_s).astype(np.float32)
    return Truth(wave, fps, pulse.beat_times_s, bpm.astype(np.float32), mask, staged.conditions)


def stage(
    world: World,
    seed: int,
    index: int,
    seconds: float,
    *,
    shape: tuple[int, int] | None = None,
    faces: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
    clip_size: int | None = None,
    who: int | None = None,
) -> Staged:
    """Draw everything about a sample. Without `shape` only the part of the frame around the face is made.

    Samples with the same `who` show the same people.
    """

    def rng(name: str, of: int | None = None) -> np.random.Generator:
        return stream(world, seed, index if of is None else of, name)

    pulse_spec = world.draw(PulseSpec, rng("pulse"), fixed)
    subject = world.draw(SubjectSpec, rng("subject", who), fixed)
    motion = world.draw(MotionSpec, rng("motion"), fixed)
    light_spec = world.draw(LightSpec, rng("light"), fixed)
    camera = world.draw(cam.CameraSpec, rng("camera"), fixed)
    frame = world.draw(FrameSpec, rng("frame"), fixed)
    crop = world.draw(CropSpec, rng("crop"), fixed)
    codec = world.draw(CodecSpec, rng("codec"), fixed)
    if codec.name == "h264" and camera.noise > 1:
        # Below this the encoder spends its time and bits on noise; nobody stores such video.
        codec = replace(codec, crf=max(codec.crf, 14 + 4 * float(np.log2(camera.noise))))
    has_pulse = pulse_spec.present and subject.kind == "person"

    camera = _in_this_light(camera, light_spec)
    face_px = frame.face_px
    if clip_size is not None and codec.name == "raw":
        # Without a codec nothing depends on the full scale but the noise, which the crop averages away.
        affordable_px = 1.5 * clip_size / crop.scale
        if face_px > affordable_px:
            shrink = affordable_px / face_px
            camera = replace(camera, noise=camera.noise * shrink, blur_px=max(camera.blur_px * shrink, 0.3))
            face_px = affordable_px
    if shape is not None:
        face_px *= shape[0] / FULL_HEIGHT_PX
    else:
        side = int(np.ceil(frame.margin * crop.scale * face_px / 16)) * 16
        shape = (side, side)

    t_s, source = cam.frame_times(camera, seconds, rng("clock"))
    light = make_light(light_spec, t_s, rng("lamps"))
    actors, pulses = [], []
    for person in range(max(1, frame.people)):
        own, heart = rng(f"person {person}", who), rng(f"heart {person}")
        skin = make_skin(
            subject.fitzpatrick, pulse_spec.amplitude if has_pulse else 0.0, pulse_spec.blood_spread, own
        )
        pulse = _pulse(pulse_spec, seconds, heart)
        beat = pulse.at(t_s) if has_pulse else np.zeros(len(t_s))
        slope = (pulse.at(t_s + _TURN_S) - pulse.at(t_s - _TURN_S)) / (2 * _TURN_S)
        breathing = (
            np.interp(t_s, pulse.t_s, pulse.breathing) if subject.kind == "person" else np.zeros(len(t_s))
        )
        if subject.kind in ("mannequin", "photo", "wall"):
            motion = replace(motion, blinks_hz=0.0, heartbeat=0.0)
        figure = make_subject(subject.kind, skin, face_px, own, faces)
        poses = make_poses(motion, t_s, breathing, beat, rng(f"poses {person}"))
        centre = _place(shape, face_px, person, max(1, frame.people), own)
        actors.append(Actor(figure, skin, poses, beat, slope, centre, face_px, subject.gloss))
        pulses.append(pulse)
    background = cam.optics(make_background(frame.background, shape, rng("background")), camera)
    level = skin_radiance(actors[0], light) if subject.kind != "wall" else float(background.mean())
    dimmer = float(np.exp(-0.6 * actors[0].skin.melanin))  # a camera exposes the scene, not the skin alone
    gain = cam.exposure(camera, t_s, rng("exposure")) * np.float32(
        dimmer * camera.skin_level / max(level, 1e-4)
    )
    scene = Scene(shape, tuple(actors), background, light, light_spec, camera, gain, t_s, source)
    conditions = {
        "world": world.name, "seed": seed, "index": index, "subject": subject.kind,
        "skin": subject.fitzpatrick if faces is None else 0,  # 0: not known of a portrait
        "motion": motion.kind, "motion_strength": round(motion.strength, 4), "light": light_spec.kind,
        "lux": round(light_spec.lux, 2), "codec": codec.name,
        "crf": codec.crf if codec.name == "h264" else -1,
        "kbps": codec.kbps, "fps": round(camera.fps, 3), "noise": round(camera.noise, 3),
        "face_px": round(face_px, 1), "bpm": round(pulse_spec.bpm, 3) if has_pulse else 0,
        "amplitude": round(actors[0].skin.amplitude, 6), **dict(actors[0].figure.tags),
    }  # fmt: skip
    return Staged(scene, tuple(pulses), crop, codec, conditions, has_pulse)


def skin_mask(actor: Actor, shape: tuple[int, int], crop: FloatArray, size: int) -> FloatArray:
    """(S,S) the living skin in the first crop."""
    figure = actor.figure
    first = actor.poses.part(slice(0, 1))
    grid = texture_grid(first, shape, actor.centre, actor.px_per_h, figure.flat)[0]
    sampler = Sampler(shape, figure.shape, figure.px_per_h)
    seen = sampler.look((figure.skin * (figure.perfusion > 0)).reshape(1, -1).astype(np.float32), grid)[0]
    return AreaCrop(box_of(crop), size, shape).mean(np.repeat(seen[:, :, None], 3, axis=2))[:, :, 0]


def _pulse(spec: PulseSpec, seconds: float, rng: np.random.Generator) -> Pulse:
    config = PulseConfig(
        bpm=float(np.clip(spec.bpm, 30, 250)), rsa=spec.rsa, hrv_s=spec.hrv_s, drift_bpm=spec.drift_bpm,
        ectopic_rate=spec.ectopic_rate, breathing_hz=spec.breathing_hz,
    )  # fmt: skip
    return pulse_wave(config.with_random_shape(rng), seconds + 0.5, CLIP_FPS, rng)


def _in_this_light(camera: cam.CameraSpec, light: LightSpec) -> cam.CameraSpec:
    """Below 300 lux the camera amplifies: more noise, and at last a darker picture."""
    need = 300 / max(light.lux, 0.1)
    if need <= 1:
        return camera
    amplified = min(need, 30.0)
    return replace(
        camera, noise=camera.noise * amplified**0.5, skin_level=camera.skin_level * (amplified / need) ** 0.7,
        exposure_s=min(camera.exposure_s * need, 1 / camera.fps),
    )  # fmt: skip


def _place(
    shape: tuple[int, int], face_px: float, person: int, people: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Where a head rests in the frame."""
    height, width = shape
    slot = width / people
    loose_x, loose_y = max(slot - 1.3 * face_px, 0), max(height - 1.4 * face_px, 0)
    x = slot * (person + 0.5) + 0.4 * loose_x * rng.uniform(-0.5, 0.5)
    y = height / 2 + 0.4 * loose_y * rng.uniform(-0.5, 0.3)
    return float(x), float(y)
