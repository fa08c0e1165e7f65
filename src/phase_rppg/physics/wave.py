"""Solve the damped wave equation in a vessel, and fit an oscillator to the pressure at one point.

    ∂²p/∂t² + α ∂p/∂t = c² ∂²p/∂x²  on 0 … L,  p(0, t) = inlet(t),  p(L, t) = 0

The paper replaces c² ∂²p/∂x² at one point by −ω² p plus a force. This keeps only the first of the modes
sin(nπx/L): each mode is an oscillator with ω_n = nπc/L, driven by the inlet. The other modes are the error of
the reduction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .fit_oscillator import Identification, identify_forced, identify_free
from .oscillator import Vessel, positive, signal_1d

FIT_FPS = 240.0


@dataclass(frozen=True, slots=True)
class VesselLine:
    """A straight vessel with damping α, wave speed c and length L."""

    alpha: float  # 1/s
    speed: float  # m/s
    length: float  # m

    def __post_init__(self) -> None:
        positive("alpha", self.alpha, "1/s")
        positive("speed", self.speed, "m/s")
        positive("length", self.length, "m")

    @classmethod
    def of(cls, vessel: Vessel, length: float) -> VesselLine:
        """Return the line for a vessel with these mechanical properties."""
        return cls(vessel.damping, math.sqrt(vessel.wave_speed_squared), length)

    def mode_omega(self, n: int = 1) -> float:
        """ω_n = nπc/L, the restoring coefficient of the n-th mode, in rad/s."""
        return n * math.pi * self.speed / self.length


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The pressure at one point, and the oscillator that was fitted to it."""

    t_s: FloatArray  # (T,)
    pressure: FloatArray  # (T,) solution of the wave equation at the point
    fit: Identification

    @property
    def error(self) -> float:
        """The root mean square of the residual, relative to the standard deviation of the pressure."""
        return math.sqrt(max(1 - self.fit.explained, 0.0))


def solve(
    line: VesselLine, duration_s: float, *, inlet: FloatArray | None = None, inlet_fps: float = FIT_FPS,
    initial: FloatArray | None = None, spot: float = 0.5, cells: int = 120,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Solve the damped wave equation by finite differences; return times (T,) and pressure (T,) at `spot`.

    `inlet` is the pressure at x = 0, sampled at `inlet_fps`. `initial` (cells+1,) is the profile at t = 0, at
    rest. `spot` is a fraction of the length. Central differences use cΔt = Δx, the largest stable step.
    """
    positive("duration_s", duration_s, "s")
    if cells < 4:
        raise ArgumentError("cells", cells, "at least 4")
    if not 0 < spot < 1:
        raise ArgumentError("spot", spot, "0 < spot < 1, a fraction of the length")
    now: FloatArray = np.zeros(cells + 1)
    if initial is not None:
        now = signal_1d("initial", initial, cells + 1)
        if len(now) != cells + 1 or abs(now[-1]) > 1e-9 * max(float(np.abs(now).max()), 1e-300):
            raise ArgumentError(
                "initial", f"shape {now.shape}, end {now[-1]:g}", f"({cells + 1},), 0 at the end"
            )
    dt_s = line.length / cells / line.speed
    t_s = np.arange(math.ceil(duration_s / dt_s) + 1) * dt_s
    edge = np.zeros(len(t_s))
    if inlet is not None:
        pressure_in = signal_1d("inlet", inlet)
        edge = np.interp(t_s, np.arange(len(pressure_in)) / positive("inlet_fps", inlet_fps), pressure_in)
    elif abs(now[0]) > 1e-9 * max(float(np.abs(now).max()), 1e-300):
        raise ArgumentError("initial", f"starts at {now[0]:g}", "0 at the inlet")

    drag = line.alpha * dt_s / 2
    position = spot * cells
    cell = min(int(position), cells - 1)
    share = position - cell
    seen = np.empty(len(t_s))
    # At rest at t = 0, the previous step equals the next step.
    before = now.copy()
    before[1:-1] = (now[2:] + now[:-2]) / 2
    for step in range(len(t_s)):
        now[0] = edge[step]
        seen[step] = (1 - share) * now[cell] + share * now[cell + 1]
        after = np.zeros(cells + 1)
        after[1:-1] = (now[2:] + now[:-2] - (1 - drag) * before[1:-1]) / (1 + drag)
        before, now = now, after
    return t_s, seen


def reduce_driven(
    line: VesselLine, inlet: FloatArray, *, fps: float = FIT_FPS, spot: float = 0.5
) -> Reduction:
    """Drive the inlet, and fit an oscillator with the same drive to the pressure at `spot`."""
    drive = signal_1d("inlet", inlet, 8)
    duration_s = len(drive) / positive("fps", fps)
    solved_s, solved = solve(line, duration_s, inlet=drive, inlet_fps=fps, spot=spot)
    t_s = np.arange(len(drive)) / fps
    pressure = np.interp(t_s, solved_s, solved)
    return Reduction(t_s, pressure, identify_forced(pressure, drive, fps))


def reduce_released(
    line: VesselLine, initial: FloatArray, duration_s: float, *, fps: float = FIT_FPS, spot: float = 0.5
) -> Reduction:
    """Release a profile (N+1,) from rest, and fit a free oscillator to the pressure at `spot`."""
    profile = signal_1d("initial", initial, 5)
    solved_s, solved = solve(line, duration_s, initial=profile, spot=spot, cells=len(profile) - 1)
    t_s = np.arange(int(duration_s * positive("fps", fps))) / fps
    pressure = np.interp(t_s, solved_s, solved)
    return Reduction(t_s, pressure, identify_free(pressure, fps))
