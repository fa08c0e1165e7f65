"""A protocol for uvicorn that cuts off clients which send their request too slowly.

uvicorn itself waits for ever for the end of a request's headers. A few idle connections would then use up its
connections. The time of the body is limited by `service.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 20.0  # from the first byte, or the connection, to the end of the headers


class DeadlineProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for the line and the headers of each request."""

    request_s = REQUEST_S
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._arm()
        else:
            self._disarm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.request_s, self.transport.close)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
