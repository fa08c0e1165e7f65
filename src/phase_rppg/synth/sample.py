"""Draw and render one sample of a world from (seed, index) alone, and keep its ground truth."""

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
from .crop import CropSpec, crop_frames, detected_squares, resample_crops, square_box, true_boxes
from .light import LightSpec, make_light
from .motion import MotionSpec, add_rolling_shutter, make_poses
from .render import Actor, Scene, frames, skin_radiance
from .skin import make_skin
from .subjects import make_subject, smooth_skin
from .warp import Sampler, texture_grid
from .world import FrameSpec, PulseSpec, SubjectSpec, World

CLIP_FPS = 30.0
FULL_HEIGHT_PX = 480  # the frame height to which `face_px` of a recipe refers
OVERSAMPLING = 1.5  # pixels of a frame without a codec per pixel of the clip
_SLOPE_STEP_S = 1 / 240  # half the step of the central difference that gives the slope of the pulse


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The ground truth of a sample, on the clock of the sample."""

    wave: FloatArray  # (T,) blood volume of the face, upstroke positive; all zero without a pulse
    fps: float
    beat_times_s: FloatArray  # (N,) empty without a pulse
    bpm: FloatArray  # (T,) instantaneous rate; zero without a pulse
    mask: FloatArray  # (S,S) 0–1: share of perfused skin in each pixel of the first crop
    conditions: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A face clip, cropped as the measuring pipeline crops it, and its ground truth."""

    pixels: ByteArray  # (T,S,S,3) u8
    truth: Truth


@dataclass(frozen=True, slots=True, eq=False)
class DrawnScene:
    """A scene that is drawn but not rendered, with the settings of crop and codec."""

    scene: Scene
    pulses: tuple[Pulse, ...]
    crop: CropSpec
    codec: CodecSpec
    conditions: Mapping[str, Any]
    has_pulse: bool


def random_stream(world: World, seed: int, index: int, name: str) -> np.random.Generator:
    """Return the random generator of one part of one sample.

    It depends on the arguments only, so that samples do not depend on their order or on the process.
    """
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
    """Return sample `index` of a world as a clip of square crops on a uniform clock."""
    if seconds <= 0 or size < 8:
        raise ArgumentError("seconds, size", (seconds, size), "a duration above 0 and at least 8 pixels")
    drawn = draw_scene(world, seed, index, seconds, faces=faces, fixed=fixed, clip_size=size)
    scene = drawn.scene
    pictures = transcode(
        frames(scene, random_stream(world, seed, index, "noise")),
        drawn.codec,
        scene.camera.fps,
        economical=True,
    )
    actor = scene.actors[0]
    where = detected_squares(
        drawn.crop, true_boxes(actor), scene.t_s, random_stream(world, seed, index, "follow")
    )
    crops = crop_frames(drawn.crop, pictures, where, scene.t_s, size)
    clock_s = np.arange(round(seconds * fps)) / fps
    pixels = resample_crops(scene.t_s, crops, clock_s)
    return Sample(pixels, truth_of(drawn, clock_s, fps, skin_mask(actor, scene.shape, where[0], size)))


def truth_of(drawn: DrawnScene, clock_s: FloatArray, fps: float, mask: FloatArray, person: int = 0) -> Truth:
    """Return the ground truth of one person on a uniform clock."""
    pulse = drawn.pulses[person]
    if not drawn.has_pulse:
        zeros = np.zeros(len(clock_s), np.float32)
        return Truth(zeros, fps, np.zeros(0), zeros, np.zeros_like(mask), drawn.conditions)
    bpm = np.interp(clock_s, pulse.t_s, pulse.bpm)
    wave = pulse.at(clock_s).astype(np.float32)
    return Truth(wave, fps, pulse.beat_times_s, bpm.astype(np.float32), mask, drawn.conditions)


@dataclass(frozen=True, slots=True, eq=False)
class _Streams:
    """The random generators of one sample. Those of a person depend on `identity` instead of the index."""

    world: World
    seed: int
    index: int
    identity: int | None

    def of_sample(self, name: str) -> np.random.Generator:
        return random_stream(self.world, self.seed, self.index, name)

    def of_person(self, name: str) -> np.random.Generator:
        index = self.index if self.identity is None else self.identity
        return random_stream(self.world, self.seed, index, name)


@dataclass(frozen=True, slots=True)
class _Specs:
    """One draw of every section of a world."""

    pulse: PulseSpec
    subject: SubjectSpec
    motion: MotionSpec
    light: LightSpec
    camera: cam.CameraSpec
    frame: FrameSpec
    crop: CropSpec
    codec: CodecSpec

    @property
    def has_pulse(self) -> bool:
        return self.pulse.present and self.subject.kind == "person"


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """What all people of a scene share: the frame, the clock, and where faces come from."""

    shape: tuple[int, int]
    face_px: float
    t_s: FloatArray  # (T,) of the camera
    seconds: float
    faces: Path | None


def draw_scene(
    world: World,
    seed: int,
    index: int,
    seconds: float,
    *,
    shape: tuple[int, int] | None = None,
    faces: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
    clip_size: int | None = None,
    identity: int | None = None,
) -> DrawnScene:
    """Draw everything about a sample. Without `shape`, the frame covers only the surroundings of the face.

    Samples with the same `identity` show the same people.
    """
    streams = _Streams(world, seed, index, identity)
    specs = _draw_specs(streams, fixed)
    face_px = specs.frame.face_px
    if clip_size is not None and specs.codec.name == "raw":
        specs, face_px = _reduce_resolution(specs, clip_size)
    if shape is not None:
        face_px *= shape[0] / FULL_HEIGHT_PX
    else:
        side = int(np.ceil(specs.frame.margin * specs.crop.scale * face_px / 16)) * 16
        shape = (side, side)

    t_s, source = cam.frame_times(specs.camera, seconds, streams.of_sample("clock"))
    light = make_light(specs.light, t_s, streams.of_sample("lamps"))
    view = _View(shape, face_px, t_s, seconds, faces)
    people = [_draw_person(person, specs, view, streams) for person in range(max(1, specs.frame.people))]
    actors = tuple(actor for actor, _ in people)
    background = make_background(specs.frame.background, shape, streams.of_sample("background"))
    background = cam.optics(background, specs.camera)
    level = skin_radiance(actors[0], light) if specs.subject.kind != "wall" else float(background.mean())
    # A camera exposes the whole scene, not the skin alone: dark skin stays darker.
    dimming = float(np.exp(-0.6 * actors[0].skin.melanin))
    gain = cam.exposure(specs.camera, t_s, streams.of_sample("exposure")) * np.float32(
        dimming * specs.camera.skin_level / max(level, 1e-4)
    )
    scene = Scene(shape, actors, background, light, specs.light, specs.camera, gain, t_s, source)
    conditions = {
        "world": world.name, "seed": seed, "index": index, **_conditions(specs, actors[0], view)
    }  # fmt: skip
    pulses = tuple(pulse for _, pulse in people)
    return DrawnScene(scene, pulses, specs.crop, specs.codec, conditions, specs.has_pulse)


def _draw_specs(streams: _Streams, fixed: Mapping[str, Any] | None) -> _Specs:
    """Draw every section of the world, and adapt the camera to the light and the codec to the noise."""
    world, of_sample = streams.world, streams.of_sample
    subject = world.draw(SubjectSpec, streams.of_person("subject"), fixed)
    motion = world.draw(MotionSpec, of_sample("motion"), fixed)
    if subject.kind != "person":
        motion = replace(motion, blinks_hz=0.0, heartbeat=0.0)
    light = world.draw(LightSpec, of_sample("light"), fixed)
    camera = world.draw(cam.CameraSpec, of_sample("camera"), fixed)
    codec = world.draw(CodecSpec, of_sample("codec"), fixed)
    if codec.name == "h264" and camera.noise > 1:
        # A lower CRF would spend time and bits on noise. Nobody stores such video.
        codec = replace(codec, crf=max(codec.crf, 14 + 4 * float(np.log2(camera.noise))))
    return _Specs(
        pulse=world.draw(PulseSpec, of_sample("pulse"), fixed),
        subject=subject,
        motion=motion,
        light=light,
        # Smoothing of skin also removes noise.
        camera=_adapt_to_light(replace(camera, noise=camera.noise * (1 - 0.5 * camera.beauty)), light),
        frame=world.draw(FrameSpec, of_sample("frame"), fixed),
        crop=world.draw(CropSpec, of_sample("crop"), fixed),
        codec=codec,
    )


def _reduce_resolution(specs: _Specs, clip_size: int) -> tuple[_Specs, float]:
    """Render a large face smaller when no codec is used, and return its height in pixels.

    Without a codec only the noise depends on the resolution, and the crop averages the noise: the noise that
    is left in the crop stays the same.
    """
    face_px = specs.frame.face_px
    enough_px = OVERSAMPLING * clip_size / specs.crop.scale
    if face_px <= enough_px:
        return specs, face_px
    scale, camera = enough_px / face_px, specs.camera
    finer_px = specs.crop.scale * face_px / clip_size
    noise = camera.noise * (
        cam.averaged_noise(camera.noise_size_px, finer_px)
        / cam.averaged_noise(camera.noise_size_px * scale, OVERSAMPLING)
    )
    camera = replace(
        camera, noise=noise, noise_size_px=camera.noise_size_px * scale,
        blur_px=max(camera.blur_px * scale, 0.3),
    )  # fmt: skip
    return replace(specs, camera=camera), enough_px


def _draw_person(person: int, specs: _Specs, view: _View, streams: _Streams) -> tuple[Actor, Pulse]:
    """Draw one person of a scene: skin, pulse, texture, motion and place in the frame."""
    own = streams.of_person(f"person {person}")
    amplitude = specs.pulse.amplitude if specs.has_pulse else 0.0
    skin = make_skin(specs.subject.fitzpatrick, amplitude, specs.pulse.blood_spread, own)
    t_s = view.t_s
    pulse = _pulse(specs.pulse, view.seconds, streams.of_sample(f"heart {person}"))
    beat = pulse.at(t_s) if specs.has_pulse else np.zeros(len(t_s))
    slope = (pulse.at(t_s + _SLOPE_STEP_S) - pulse.at(t_s - _SLOPE_STEP_S)) / (2 * _SLOPE_STEP_S)
    breathing = np.zeros(len(t_s))
    if specs.subject.kind == "person":
        breathing = np.interp(t_s, pulse.t_s, pulse.breathing)
    figure = make_subject(specs.subject.kind, skin, view.face_px, own, view.faces)
    if specs.camera.beauty > 0:
        figure = smooth_skin(figure, specs.camera.beauty)
    poses = make_poses(specs.motion, t_s, breathing, beat, streams.of_sample(f"poses {person}"))
    if specs.camera.rolling > 0:
        row_s = specs.camera.rolling * specs.camera.readout_s * specs.frame.face_px / FULL_HEIGHT_PX
        add_rolling_shutter(poses, row_s)
    if specs.has_pulse:
        beat = beat + specs.pulse.breathing_baseline * breathing
    centre = _place(view.shape, view.face_px, person, max(1, specs.frame.people), own)
    return Actor(figure, skin, poses, beat, slope, centre, view.face_px, specs.subject.gloss), pulse


def _conditions(specs: _Specs, actor: Actor, view: _View) -> dict[str, Any]:
    """Return the settings of a sample that are stored with it."""
    codec, camera = specs.codec, specs.camera
    return {
        "subject": specs.subject.kind,
        "skin": specs.subject.fitzpatrick if view.faces is None else 0,  # 0: unknown for a portrait
        "motion": specs.motion.kind, "motion_strength": round(specs.motion.strength, 4),
        "light": specs.light.kind, "lux": round(specs.light.lux, 2),
        "codec": codec.name, "crf": codec.crf if codec.name == "h264" else -1,
        "kbps": codec.kbps, "bpp": round(codec.bpp, 4),
        "fps": round(camera.fps, 3), "noise": round(camera.noise, 3), "face_px": round(view.face_px, 1),
        "bpm": round(specs.pulse.bpm, 3) if specs.has_pulse else 0,
        "amplitude": round(actor.skin.amplitude, 6), **dict(actor.figure.tags),
    }  # fmt: skip


def skin_mask(actor: Actor, shape: tuple[int, int], crop: FloatArray, size: int) -> FloatArray:
    """Return the share of perfused skin in each pixel of the first crop, (S,S)."""
    figure = actor.figure
    first = actor.poses.part(slice(0, 1))
    grid = texture_grid(first, shape, actor.centre, actor.px_per_h, figure.flat)[0]
    sampler = Sampler(shape, figure.shape, figure.px_per_h)
    seen = sampler.sample((figure.skin * (figure.perfusion > 0)).reshape(1, -1).astype(np.float32), grid)[0]
    return AreaCrop(square_box(crop), size, shape).mean(np.repeat(seen[:, :, None], 3, axis=2))[:, :, 0]


def _pulse(spec: PulseSpec, seconds: float, rng: np.random.Generator) -> Pulse:
    bpm = float(np.clip(spec.bpm, 30, 250))
    config = PulseConfig(
        bpm=bpm, rsa=spec.rsa, hrv_s=spec.hrv_s, drift_bpm=spec.drift_bpm,
        ectopic_rate=spec.ectopic_rate, breathing_hz=spec.breathing_hz, irregular=spec.irregular,
        # Slightly inside the accepted rates, because 250 / bpm * bpm can round to more than 250.
        step_factor=float(np.clip(spec.step_factor, 30.001 / bpm, 249.999 / bpm)), step_s=spec.step_s,
    )  # fmt: skip
    return pulse_wave(config.with_random_shape(rng), seconds + 0.5, CLIP_FPS, rng)


def _adapt_to_light(camera: cam.CameraSpec, light: LightSpec) -> cam.CameraSpec:
    """Raise gain and exposure time below 300 lux; beyond the largest gain the picture becomes darker."""
    wanted_gain = 300 / max(light.lux, 0.1)
    if wanted_gain <= 1:
        return camera
    gain = min(wanted_gain, 30.0)
    return replace(
        camera, noise=camera.noise * gain**0.5, skin_level=camera.skin_level * (gain / wanted_gain) ** 0.7,
        exposure_s=min(camera.exposure_s * wanted_gain, 1 / camera.fps),
    )  # fmt: skip


def _place(
    shape: tuple[int, int], face_px: float, person: int, people: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the resting position (x, y) of a head in the frame."""
    height, width = shape
    slot = width / people
    free_x, free_y = max(slot - 1.3 * face_px, 0), max(height - 1.4 * face_px, 0)
    x = slot * (person + 0.5) + 0.4 * free_x * rng.uniform(-0.5, 0.5)
    y = height / 2 + 0.4 * free_y * rng.uniform(-0.5, 0.3)
    return float(x), float(y)
