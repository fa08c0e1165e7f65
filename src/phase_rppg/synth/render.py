"""Render frames from texture layers, poses, lights and a pulse.

    I(x,t) = albedo(x) · shading(x, pose) · (1 − a·w(x)·p(t − τ(x))·blood) · light(t)        linear light
    p(t − τ) ≈ p(t) − τ·p′(t)

The texture of a person in each frame is therefore a short sum of fixed maps with time-dependent coefficients.
One matrix product computes it for FRAMES_AT_ONCE frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..types import ByteArray, FloatArray
from . import camera as cam
from .light import Light, LightSpec, mains
from .motion import Poses
from .random_fields import interpolation
from .skin import Skin
from .texture_layers import Figure, grid
from .warp import Sampler, texture_grid

FRAMES_AT_ONCE = 12
GLOSS_SHARPNESS = 18


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """One person in the scene, with the blood volume at the times of the camera."""

    figure: Figure
    skin: Skin
    poses: Poses
    pulse: FloatArray  # (T,) blood volume
    slope: FloatArray  # (T,) its derivative per second
    centre: tuple[float, float]  # resting position in the frame, pixels (x, y)
    px_per_h: float  # pixels of the frame per box height
    gloss: float = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything that is needed to render one clip."""

    shape: tuple[int, int]  # of the frame, rows and columns
    actors: tuple[Actor, ...]
    background: FloatArray  # (3,H,W)
    light: Light
    light_spec: LightSpec
    camera: cam.CameraSpec
    gain: FloatArray  # (T,3) exposure and white balance over time
    t_s: FloatArray  # (T,) times of the pictures
    source: cam.IntArray  # (T,) index of the picture that each frame shows


def frames(scene: Scene, rng: np.random.Generator) -> Iterator[ByteArray]:
    """Render the scene frame by frame, (H,W,3) u8."""
    sensor = cam.Sensor(scene.camera, scene.shape, rng)
    layers = [_Layer(actor, scene) for actor in scene.actors]
    rows = mains(
        scene.light_spec,
        scene.t_s,
        scene.shape[0],
        scene.camera.exposure_s,
        scene.camera.readout_s,
        rng.uniform(0, 6),
    )
    intensity = scene.light.key + np.float32(scene.light.spill) * scene.light.second
    tone = cam.LocalTone(scene.camera.local_tone, scene.shape) if scene.camera.local_tone > 0 else None
    shadow = _shadow(scene)
    shaken = next((actor for actor in scene.actors[:1] if actor.poses.camera_x.any()), None)
    moving_background = None if shaken is None else _MovingBackground(scene.background, shaken)
    last: ByteArray | None = None
    for k in range(len(scene.t_s)):
        if last is not None and scene.source[k] == scene.source[k - 1]:
            yield last
            continue
        at = int(scene.source[k])
        behind = scene.background if moving_background is None else moving_background.at(at)
        picture = behind * (intensity[at] * scene.gain[at])[:, None, None]
        for layer in layers:
            layer.draw(picture, at)
        if scene.light_spec.mains_ripple > 0:
            picture *= rows[at][None, :, None]
        if shadow is not None:
            picture *= _interpolate(shadow[at], scene.shape)
        if tone is not None:
            tone.apply(picture)
        last = sensor.expose(picture)
        yield last


def skin_radiance(actor: Actor, light: Light) -> float:
    """Return the mean brightness of the facial skin before exposure."""
    maps = _shading(actor.figure, light.key_from, light.ambient)
    weight = (
        actor.figure.skin * (actor.figure.perfusion > 0)
        if actor.figure.perfusion.any()
        else actor.figure.skin
    )
    total = float(weight.sum())
    if total <= 0:
        weight, total = actor.figure.alpha, max(float(actor.figure.alpha.sum()), 1.0)
    colour = (actor.figure.albedo * (maps[0] * weight)).sum((1, 2)) / total
    level = colour * (light.key.mean(0) + light.second.mean(0))
    return float(level @ np.array([0.3, 0.6, 0.1]))


class _Layer:
    """The maps and coefficients of one actor, and the part of the frame that the actor covers."""

    def __init__(self, actor: Actor, scene: Scene) -> None:
        figure, light = actor.figure, scene.light
        coefficients = _coefficients(actor, light)  # (T,3,K)
        used = np.flatnonzero(np.abs(coefficients).max((0, 1)) > 0)
        self.coefficients = coefficients[:, :, used] * scene.gain[:, :, None]  # (T,3,K)
        self.window = _window(actor, scene.shape)
        top, bottom, left, right = self.window
        self.actor, self.shape = actor, (bottom - top, right - left)
        self.centre = (actor.centre[0] - left, actor.centre[1] - top)
        part = self._part(figure, cam.optics_reach(scene.camera))
        self.sampler = Sampler(self.shape, figure.shape, figure.px_per_h, part)
        seen = figure.part(*part)
        spot = _spot(figure, light)
        maps = _maps(
            replace(actor, figure=seen), light, scene.camera,
            spot if spot is None else spot[part[0] : part[1], part[2] : part[3]],
        )  # fmt: skip
        self.maps = np.empty((3, len(used), seen.alpha.size), np.float32)  # (3,K,N)
        for k, which in enumerate(used):
            self.maps[:, k] = maps[which]().reshape(3, -1)
        self.alpha = cam.optics(seen.alpha, scene.camera).reshape(-1)
        self.ready: dict[int, tuple[FloatArray, FloatArray]] = {}

    def _part(self, figure: Figure, rim_px: int) -> tuple[int, int, int, int]:
        """Return the part of the texture that is visible in any frame, usually less than half of it."""
        whole, count = Sampler(self.shape, figure.shape, figure.px_per_h), len(self.coefficients)
        blocks = (self._grids(k, min(k + FRAMES_AT_ONCE, count)) for k in range(0, count, FRAMES_AT_ONCE))
        return whole.bounds(blocks, rim_px)

    def texture(self, at: int) -> tuple[FloatArray, FloatArray]:
        """Return the premultiplied colours (3,N) and the texture grid (2,gh,gw) of one frame."""
        if at not in self.ready:
            span = range(at, min(at + FRAMES_AT_ONCE, len(self.coefficients)))
            block = self.coefficients[span.start : span.stop]
            planes = np.empty((len(span), 3, self.maps.shape[2]), np.float32)
            for channel in range(3):
                np.matmul(block[:, channel], self.maps[channel], out=planes[:, channel])
            grids = self._grids(span.start, span.stop)
            self.ready = dict(zip(span, zip(planes, grids, strict=True), strict=True))
        return self.ready[at]

    def _grids(self, start: int, stop: int) -> FloatArray:
        """Return the texture grids of some frames, (T,2,gh,gw)."""
        poses, actor = self.actor.poses.part(slice(start, stop)), self.actor
        return texture_grid(poses, self.shape, self.centre, actor.px_per_h, actor.figure.flat)

    def draw(self, picture: FloatArray, at: int) -> None:
        top, bottom, left, right = self.window
        colours, grid = self.texture(at)
        seen = self.sampler.sample((*colours, self.alpha), grid)
        part = picture[:, top:bottom, left:right]
        np.subtract(1, seen[3], out=seen[3])
        part *= seen[3]
        part += seen[:3]


def _spot(figure: Figure, light: Light) -> FloatArray | None:
    """Return the falloff (H,W) of the second light from the centre of its spot; None if it is even."""
    if light.falloff <= 0:
        return None
    u, v = grid(figure.px_per_h)
    (cu, cv), sharp = light.spot, light.falloff
    return (1 / (1 + (sharp * (u - cu)) ** 2 + (sharp * (v - cv)) ** 2)).astype(np.float32)


def _maps(
    actor: Actor, light: Light, camera: cam.CameraSpec, spot: FloatArray | None
) -> list[Callable[[], FloatArray]]:
    """Return functions that compute K fixed maps (3,H,W); the order matches `_coefficients`."""
    f = actor.figure
    key, turn_yaw, turn_pitch = _shading(f, light.key_from, light.ambient)
    second = _shading(f, light.second_from, light.ambient)[0]
    if spot is not None:
        second = second * spot
    polish = np.float32(actor.gloss) * f.gloss * f.alpha
    shine, shine_yaw, shine_pitch = (polish * part for part in _gloss(f, light.key_from))
    colour = cam.optics(f.albedo * f.alpha, camera)
    share = _steady_share(light)
    lit = colour * (key if share is None else key + share[:, None, None] * second)
    return [
        lambda: lit + shine, lambda: lit * f.perfusion, lambda: lit * (f.perfusion * f.delay_s),
        lambda: colour * second, lambda: colour * (second * f.perfusion),
        lambda: colour * turn_yaw + shine_yaw, lambda: colour * turn_pitch + shine_pitch,
        lambda: cam.optics(f.blink * key, camera), lambda: cam.optics(f.mouth * key, camera),
    ]  # fmt: skip


def _coefficients(actor: Actor, light: Light) -> FloatArray:
    """Return the coefficient of each map in each frame, (T,3,K)."""
    blood = (actor.skin.amplitude * actor.skin.pulsation)[None, :]  # (1,3)
    volume, slope = actor.pulse[:, None] * blood, actor.slope[:, None] * blood
    key, poses = light.key, actor.poses
    second = light.second if _steady_share(light) is None else np.zeros_like(light.second)
    yaw, pitch = (np.clip(angle, -0.5, 0.5)[:, None] for angle in (poses.yaw, poses.pitch))
    columns = [
        key, -key * volume, key * slope,
        second, -second * volume,
        key * yaw, key * pitch,
        key * poses.blink[:, None], key * poses.jaw[:, None],
    ]  # fmt: skip
    return np.stack(columns, axis=2).astype(np.float32)


def _steady_share(light: Light) -> FloatArray | None:
    """Return the constant ratio (3,) of the second light to the key light, or None if the ratio changes.

    With a constant ratio, fewer maps are needed.
    """
    share = light.second / light.key
    return share[0] if float(np.ptp(share, axis=0).max()) < 1e-4 else None


def _shading(
    figure: Figure, towards: FloatArray, ambient: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Lambert shading (H,W) of one light, and its derivatives with respect to yaw and pitch."""
    nx, ny, nz = figure.normals
    lx, ly, lz = towards
    facing = nx * lx + ny * ly + nz * lz
    lit = (facing > 0).astype(np.float32) * np.float32(0 if figure.flat else 1 - ambient)
    shade = np.float32(ambient) * (0.75 + 0.25 * nz) + (1 - np.float32(ambient)) * np.maximum(facing, 0)
    return shade, lit * (nz * lx - nx * lz), lit * (nz * ly - ny * lz)


def _gloss(figure: Figure, towards: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Blinn specular reflection (H,W) of one light, and its derivatives as in `_shading`."""
    half = towards + np.array([0, 0, 1], np.float32)
    hx, hy, hz = half / np.linalg.norm(half)
    nx, ny, nz = figure.normals
    facing = np.clip(nx * hx + ny * hy + nz * hz, 0, 1)
    steep = facing ** (GLOSS_SHARPNESS - 1)
    slope = steep * np.float32(0 if figure.flat else GLOSS_SHARPNESS)
    return steep * facing, slope * (nz * hx - nx * hz), slope * (nz * hy - ny * hz)


def _window(actor: Actor, shape: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return top, bottom, left and right of the frame area that the person can cover."""
    reach = 1.05 * actor.px_per_h
    move_x = float(np.abs(actor.poses.x + actor.poses.camera_x).max()) * actor.px_per_h
    move_y = float(np.abs(actor.poses.y + actor.poses.camera_y).max()) * actor.px_per_h
    x, y = actor.centre
    top, left = max(0, int(y - reach - move_y)), max(0, int(x - 1.6 * reach - move_x))
    bottom = shape[0] if not actor.figure.flat else min(shape[0], int(y + reach + move_y) + 1)
    return top, max(bottom, top + 2), left, min(shape[1], max(int(x + 1.6 * reach + move_x) + 1, left + 2))


class _MovingBackground:
    """The background of a moving camera: shifted with sub-pixel precision, edges repeated."""

    def __init__(self, background: FloatArray, actor: Actor) -> None:
        poses, self.shape = actor.poses, background.shape[1:]
        self.shifts_px = np.stack([poses.camera_y, poses.camera_x], axis=1) * actor.px_per_h  # (T,2)
        self.rim_px = int(np.ceil(np.abs(self.shifts_px).max())) + 1
        rim = (self.rim_px, self.rim_px)
        self.padded = np.pad(background, ((0, 0), rim, rim), mode="edge")

    def at(self, at: int) -> FloatArray:
        """Return the background of one frame, (3,H,W)."""
        picture = self.padded
        for axis, length, shift_px in zip((1, 2), self.shape, self.shifts_px[at], strict=True):
            whole = int(np.floor(shift_px))
            near, far = (
                picture[(slice(None),) * axis + (slice(start, start + length),)]
                for start in (self.rim_px - whole, self.rim_px - whole - 1)
            )
            picture = near + np.float32(shift_px - whole) * (far - near)
        return picture


def _shadow(scene: Scene) -> FloatArray | None:
    """Return the gain of a soft moving shadow on a coarse grid, (T,rows,columns), or None without one."""
    light = scene.light
    if light.shadow is None:
        return None
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 17), np.linspace(-0.5, 0.5, 17))
    across = 0.5 + x * np.cos(light.shadow_angle) + y * np.sin(light.shadow_angle)
    covered = 1 / (1 + np.exp((across[None] - light.shadow[:, None, None]) / 0.06))
    return (1 - light.shadow_depth * covered).astype(np.float32)


def _interpolate(field: FloatArray, shape: tuple[int, int]) -> FloatArray:
    interpolated: FloatArray = (
        interpolation(shape[0], field.shape[0]) @ field @ interpolation(shape[1], field.shape[1]).T
    )
    return interpolated
