"""Feed the crops of one face to a streaming network, in batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import ByteArray, FloatArray
from .pulse_model import PulseModel

BATCH = 6  # crops per call of the network; 0.2 s at 30 frames per second
FILE_BATCH = 15  # the same if results may be late; more crops no longer fit into the cache of a core


class NetworkFeeder:
    """Collects crops, runs the network and passes its output to `write(first_tick, values)`.

    The network restarts after every absence of the face. Its output is shifted back by its delay, and
    output for the time before the first crop is dropped.
    """

    def __init__(
        self,
        model: PulseModel,
        first_tick: int,
        write: Callable[[int, FloatArray], None],
        batch: int = BATCH,
    ) -> None:
        self._initial, self._write, self._batch = model, write, batch
        self.model = model.fresh()
        self._to_drop = self.model.delay_frames  # outputs that belong to the time before the first crop
        self._started = False  # whether the network has had a crop since its last restart
        self._pending: list[ByteArray] = []
        self._pending_first = first_tick
        self.done_tick = first_tick  # the network has had all crops before this tick

    def push(self, tick: int, crop: ByteArray) -> None:
        """Add the crop of a tick; a full batch of crops runs the network."""
        if not self._pending:
            self._pending_first = tick
        self._pending.append(crop)
        self._started = True
        if len(self._pending) >= self._batch:
            self.run()

    def run(self) -> None:
        """Run the network on the crops that were not given to it yet."""
        if not self._pending:
            return
        values = np.asarray(self.model.step(np.stack(self._pending)), float)  # (t,)
        dropped = min(self._to_drop, len(values))
        self._to_drop -= dropped
        self._write(self._pending_first - self.model.delay_frames + dropped, values[dropped:])
        self.done_tick = self._pending_first + len(values)
        self._pending.clear()

    def restart(self) -> None:
        """Run the network on the pending crops, then reset its state."""
        if self._started:
            self.run()
            self.model, self._started = self._initial.fresh(), False
            self._to_drop = self.model.delay_frames

    def flush(self, crop: ByteArray, stop_tick: int) -> None:
        """Repeat the last crop for the delay of the network, which completes its output up to `stop_tick`."""
        if self.model.delay_frames:
            self.run()
            self._pending_first = stop_tick
            self._pending = [crop] * self.model.delay_frames
            self.run()
