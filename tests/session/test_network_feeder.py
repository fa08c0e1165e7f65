"""The network feeder gives every crop to the network once and puts its output at the right ticks."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.session.network_feeder import BATCH, NetworkFeeder
from phase_rppg.types import ByteArray, FloatArray


class FirstPixel:
    """A network that returns the first pixel of the crop `delay_frames` ago; NaN before the first one."""

    name, fps, size = "first-pixel", 30.0, 2

    def __init__(self, delay_frames: int, calls: list[int]) -> None:
        self.delay_frames, self.calls = delay_frames, calls
        self._waiting = [np.nan] * delay_frames

    def fresh(self) -> FirstPixel:
        return FirstPixel(self.delay_frames, self.calls)

    def step(self, crops: ByteArray) -> FloatArray:
        self.calls.append(len(crops))
        self._waiting += crops[:, 0, 0, 0].tolist()
        output, self._waiting = self._waiting[: len(crops)], self._waiting[len(crops) :]
        return np.array(output)


def crop(value: int) -> ByteArray:
    return np.full((2, 2, 3), value, np.uint8)


def feeder(delay_frames: int, first_tick: int = 0) -> tuple[NetworkFeeder, dict[int, float], list[int]]:
    """A feeder, its output by tick, and the size of each batch."""
    output: dict[int, float] = {}
    calls: list[int] = []

    def write(first: int, values: FloatArray) -> None:
        for tick, value in enumerate(values.tolist(), first):
            assert tick not in output
            output[tick] = value

    return NetworkFeeder(FirstPixel(delay_frames, calls), first_tick, write), output, calls


@pytest.mark.parametrize("delay_frames", [0, 1, 7])
def test_the_output_belongs_to_the_tick_of_its_crop(delay_frames: int) -> None:
    network, output, _ = feeder(delay_frames, first_tick=5)
    for tick in range(5, 25):
        network.push(tick, crop(tick))
    network.flush(crop(24), 25)
    network.run()
    assert output == {tick: float(tick) for tick in range(5, 25)}


def test_crops_are_batched_and_run_completes_the_batch() -> None:
    network, output, calls = feeder(0)
    for tick in range(BATCH + 2):
        network.push(tick, crop(tick))
    assert calls == [BATCH]
    assert (len(output), network.done_tick) == (BATCH, BATCH)
    network.run()
    network.run()
    assert calls == [BATCH, 2]
    assert (len(output), network.done_tick) == (BATCH + 2, BATCH + 2)


def test_a_restart_forgets_the_crops_before_it() -> None:
    """The last frames before the restart have no output, by the delay; no old crop appears after it."""
    network, output, _ = feeder(3)
    for tick in range(10):
        network.push(tick, crop(tick))
    before = network.model
    network.restart()
    restarted = network.model
    network.restart()
    assert restarted is not before
    assert network.model is restarted  # without a new crop there is nothing to forget
    for tick in range(40, 50):
        network.push(tick, crop(tick))
    network.flush(crop(49), 50)
    assert sorted(output) == [*range(7), *range(40, 50)]
    assert all(output[tick] == tick for tick in output)
