"""A measurement opens no socket: the kernel ends any process of it that tries."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.video.encode import write_video

SOCKET_CALLS = {"x86_64": 41, "aarch64": 198}  # number of the system call `socket`
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in SOCKET_CALLS, reason="uses seccomp of Linux"
)
# Installs a filter that ends the process at the system call `socket`; children inherit it.
FORBID_SOCKETS = """
import ctypes, struct, sys
def instruction(code, true, false, value): return struct.pack("<HBBI", code, true, false, value)
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000
program = instruction(LOAD, 0, 0, 0) + instruction(JUMP_IF_EQUAL, 0, 1, {number})
program += instruction(RETURN, 0, 0, KILL_PROCESS) + instruction(RETURN, 0, 0, ALLOW)
code = ctypes.create_string_buffer(program, len(program))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
filter = Filter(len(program) // 8, ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filter), 0, 0):
    sys.exit(77)  # this system has no seccomp
"""


def run_without_sockets(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    # Without the variables that switch telemetry off, and with an empty home folder, as on a new computer.
    quiet = ("ORT_", "CI", "GITHUB_", "XDG_", "DO_NOT_TRACK")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(quiet)}
    code = FORBID_SOCKETS.format(number=SOCKET_CALLS[platform.machine()]) + script
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
        env={**environment, "HOME": str(home)},
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this system has no seccomp")
    return done


def test_the_filter_ends_a_process_that_opens_a_socket(tmp_path: Path) -> None:
    assert run_without_sockets("import socket; socket.socket()", tmp_path).returncode == -signal.SIGSYS
    native = "import ctypes; ctypes.CDLL(None).socket(2, 1, 0)"
    assert run_without_sockets(native, tmp_path).returncode == -signal.SIGSYS


def test_a_measurement_opens_no_socket(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 96, 128, 3), np.uint8)
    write_video(tmp_path / "video.mp4", noise, 30)
    home = tmp_path / "home"
    home.mkdir()
    script = f"from phase_rppg.cli import run; sys.exit(run(['measure', {str(tmp_path / 'video.mp4')!r}]))"
    done = run_without_sockets(script, home)
    assert done.returncode == 3, done.stderr
    assert "NO_FACE" in done.stdout
    assert list(home.rglob("*")) == []


RUN_NETWORKS = """
import numpy as np
from phase_rppg.face.detector import Detector
from phase_rppg.infer import onnx
import onnxruntime
calls, disable = [], onnxruntime.disable_telemetry_events
onnxruntime.disable_telemetry_events = lambda: (calls.append(1), disable())
Detector().detect(np.zeros((64, 64, 3), np.uint8))
model = onnx.load()
model.step(np.zeros((4, model.size, model.size, 3), np.uint8))
print(len(calls))
"""


def test_the_networks_send_no_telemetry(tmp_path: Path) -> None:
    """With telemetry, onnxruntime 1.31 writes a device identifier and opens a socket after nine seconds."""
    done = run_without_sockets(RUN_NETWORKS + "import time; time.sleep(12)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == []


def test_the_api_switches_telemetry_off_for_each_network(tmp_path: Path) -> None:
    """The variable is read when onnxruntime is imported; the program may have imported it before."""
    done = run_without_sockets(RUN_NETWORKS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2\n"
