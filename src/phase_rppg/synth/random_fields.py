"""Smooth random fields in space, smooth noise in time, and interpolation functions."""

from __future__ import annotations

import functools

import numpy as np

from ..types import FloatArray


@functools.lru_cache(maxsize=256)
def interpolation(outputs: int, nodes: int, smooth: bool = False) -> FloatArray:
    """Return the matrix (outputs, nodes) that interpolates `nodes` values at `outputs` positions.

    The interpolation is linear, or a smoothstep that hides the grid.
    """
    position = np.linspace(0, nodes - 1, outputs)
    below = np.minimum(position.astype(int), max(nodes - 2, 0))
    weight = position - below
    if smooth:
        weight = weight * weight * (3 - 2 * weight)
    matrix = np.zeros((outputs, nodes), np.float32)
    rows = np.arange(outputs)
    matrix[rows, below] = 1 - weight
    if nodes > 1:
        matrix[rows, below + 1] += weight
    matrix.setflags(write=False)
    return matrix


def smooth_field(shape: tuple[int, int], cells: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Return zero-mean noise of about unit standard deviation, smooth over 1/`cells` of its sides."""
    rows, columns = max(2, cells[0] + 1), max(2, cells[1] + 1)
    grid = rng.standard_normal((rows, columns)).astype(np.float32)
    down, across = interpolation(shape[0], rows, True), interpolation(shape[1], columns, True)
    field: FloatArray = down @ grid @ across.T
    return field


def octaves(
    shape: tuple[int, int], cells: float, count: int, rng: np.random.Generator, falloff: float = 0.6
) -> FloatArray:
    """Return the sum of several smooth fields, each finer and weaker than the one before."""
    total = np.zeros(shape, np.float32)
    for octave in range(count):
        side = max(1, int(min(cells * 2**octave, min(shape) / 1.5)))
        total += np.float32(falloff**octave) * smooth_field(shape, (side, side), rng)
    return total


def smooth_noise(t_s: FloatArray, cutoff_hz: float, rng: np.random.Generator) -> FloatArray:
    """Return zero-mean noise (T,) of about unit standard deviation, with little power above `cutoff_hz`."""
    step_s = 0.5 / cutoff_hz
    start_s = float(t_s[0]) - rng.uniform(1, 2) * step_s
    nodes = int((float(t_s[-1]) - start_s) / step_s) + 4
    values = rng.standard_normal(nodes)
    position = (t_s - start_s) / step_s
    below = position.astype(int)
    w = position - below
    # Catmull–Rom spline: it interpolates the nodes and has a continuous slope.
    p0, p1, p2, p3 = (values[np.clip(below + k, 0, nodes - 1)] for k in (-1, 0, 1, 2))
    curve: FloatArray = p1 + 0.5 * w * (
        p2 - p0 + w * (2 * p0 - 5 * p1 + 4 * p2 - p3 + w * (3 * (p1 - p2) + p3 - p0))
    )
    return curve


def poisson_events(t_s: FloatArray, rate_hz: float, rng: np.random.Generator) -> FloatArray:
    """Draw the sorted event times of a Poisson process over the span of `t_s`."""
    start_s, end_s = float(t_s[0]), float(t_s[-1])
    count = rng.poisson(rate_hz * max(end_s - start_s, 0.0))
    return np.sort(rng.uniform(start_s, end_s, count))


def ramp(t_s: FloatArray, at_s: float, duration_s: float) -> FloatArray:
    """Return a smoothstep from 0 at `at_s` to 1 at `at_s + duration_s`."""
    x = np.clip((t_s - at_s) / max(duration_s, 1e-6), 0, 1)
    return x * x * (3 - 2 * x)


def soft(x: FloatArray, edge: float = 1.0) -> FloatArray:
    """Return a soft threshold: 0 below −edge/2, 1 above +edge/2, a smoothstep between."""
    y = np.clip(x / np.float32(edge) + np.float32(0.5), 0, 1)
    return y * y * (3 - 2 * y)
