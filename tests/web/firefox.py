"""Firefox for the tests, driven by Marionette, the protocol that is built into it.

`FirefoxPage` has the few methods of Playwright's page that the tests use. Playwright itself drives only its
own build of Firefox, which is not in the distribution.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_S = 120.0
SCRIPT_S = 240.0
PREFERENCES: dict[str, Any] = {
    # A camera with a test picture, allowed without a question.
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    # No connection to other hosts.
    "app.update.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "",
    "toolkit.telemetry.server": "",
    # A number in the page changes without an animation.
    "ui.prefersReducedMotion": 1,
}


class FirefoxError(AssertionError):
    """A command that Firefox refused."""


class Marionette:
    """A connection to the Marionette server of a running Firefox."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SCRIPT_S + 30)
        self._count = 0
        self._receive()  # the greeting

    def call(self, command: str, **parameters: Any) -> Any:
        """Run a command and return its answer."""
        self._count += 1
        message = json.dumps([0, self._count, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, answer = self._receive()
        if error is not None:
            raise FirefoxError(f"{command}: {error.get('message')}")
        return answer.get("value") if isinstance(answer, dict) and "value" in answer else answer

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> Any:
        digits = b""
        while not digits.endswith(b":"):
            digits += self._read(1)
        return json.loads(self._read(int(digits[:-1])))

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise FirefoxError("Firefox closed the connection")
            data += part
        return data


class FirefoxPage:
    """One page of Firefox, with the methods of Playwright's page that the tests use."""

    def __init__(self, marionette: Marionette) -> None:
        self._marionette = marionette
        self._marionette.call("WebDriver:SetTimeouts", script=round(1000 * SCRIPT_S))

    def goto(self, url: str) -> None:
        self._marionette.call("WebDriver:Navigate", url=url)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Return the value of an expression; a function is called with the argument and awaited."""
        script = f"""
          const done = arguments[arguments.length - 1];
          (async () => {{
            const value = ({expression.strip()});
            return typeof value === "function" ? await value(arguments[0]) : value;
          }})().then((value) => done([value]), (error) => done([null, String(error)]));
        """
        value, *problem = self._marionette.call(
            "WebDriver:ExecuteAsyncScript", script=script, args=[argument]
        )
        if problem:
            raise FirefoxError(problem[0])
        return value

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def inner_text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def get_attribute(self, selector: str, name: str) -> str | None:
        found: str | None = self.evaluate(
            f"document.querySelector({json.dumps(selector)}).getAttribute({json.dumps(name)})"
        )
        return found

    def wait_for_timeout(self, ms: float) -> None:
        time.sleep(ms / 1000)

    def screenshot(self, path: str) -> None:
        Path(path).write_bytes(base64.b64decode(self._marionette.call("WebDriver:TakeScreenshot", full=True)))


@contextmanager
def firefox_page(executable: str, preferences: dict[str, Any] | None = None) -> Iterator[FirefoxPage]:
    """Run Firefox with an empty profile and yield its page."""
    profile = Path(tempfile.mkdtemp(prefix="phase-firefox-"))
    port = _free_port()
    settings = PREFERENCES | {"marionette.port": port} | (preferences or {})
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    command = [executable, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    command += ["--width", "320", "--height", "480"]  # drawn by the processor: a small window is cheaper
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    marionette: Marionette | None = None
    try:
        marionette = _connect(port, process)
        marionette.call("WebDriver:NewSession", capabilities={})
        yield FirefoxPage(marionette)
    finally:
        if marionette is not None:
            marionette.close()
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(profile, ignore_errors=True)


def _connect(port: int, process: subprocess.Popen[bytes]) -> Marionette:
    until = time.monotonic() + START_S
    while True:
        try:
            return Marionette(port)
        except OSError:
            assert process.poll() is None, "Firefox ended at its start"
            assert time.monotonic() < until, f"Firefox did not start within {START_S:.0f} s"
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
