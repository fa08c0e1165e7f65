"""`phase doctor` names every part that does not work and what to do about it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from phase_rppg.cli import doctor as command
from phase_rppg.cli import run
from phase_rppg.face import detector
from phase_rppg.infer import onnx
from phase_rppg.measurement import doctor
from phase_rppg.measurement.doctor import FAILED, NOTICE, OK, Check
from phase_rppg.video import camera
from phase_rppg.web import assets


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page, so that the result does not depend on Node.js."""
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").touch()
    monkeypatch.setattr(assets, "PAGE", tmp_path / "page")
    return tmp_path / "page"


def test_a_complete_installation_is_usable(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started_s = time.monotonic()
    assert run(["doctor", "--json"]) == 0
    assert time.monotonic() - started_s < 60
    document = json.loads(capsys.readouterr().out)
    assert document["usable"] is True
    states = {check["name"]: check["state"] for check in document["checks"]}
    assert FAILED not in states.values()
    for name in ("phase-rppg", "python", "numpy", "onnxruntime", "av", "codec h264", "weights detector",
                 "weights phasenet-stream", "speed decoding", "speed detector", "speed network",
                 "page of phase live"):  # fmt: skip
        assert states[name] == OK, name
    assert {"codec hevc", "codec vp9", "codec mjpeg", "codec mpeg4", "camera"} <= set(states)
    for check in document["checks"]:
        assert bool(check["remedy"]) == (check["state"] != OK), check


def test_a_missing_page_is_a_red_line(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (page / "index.html").unlink()
    monkeypatch.setattr(doctor, "checks", lambda: iter([Check("numpy", OK, "2.0")]))
    assert run(["doctor"]) == 4
    out, err = capsys.readouterr()
    assert "✗ page of phase live" in out
    assert "→ install Node.js 20 or newer" in out
    assert err == "error: 1 of 2 checks failed: page of phase live\n"


def test_a_remedy_fits_a_terminal_and_stays_one_line_in_a_file() -> None:
    remedy = "→ " + "connect a camera and allow its use; " * 4
    wide = command.indented(remedy, Console(force_terminal=True, width=80)).splitlines()
    assert len(wide) > 1
    assert all(line.startswith(" " * 27) and len(line) <= 80 for line in wide)
    assert command.indented(remedy, Console(force_terminal=False, width=80)).count("\n") == 0


def copied_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "weights"
    shutil.copytree(onnx.WEIGHTS, folder)
    monkeypatch.setattr(onnx, "WEIGHTS", folder)
    return folder


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_tampered_weights_are_a_red_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied_weights(tmp_path, monkeypatch)
    assert all(check.state == OK for check in doctor.weights_checks())
    flip_a_byte(folder / "phasenet-stream.onnx")
    network, found_detector = doctor.weights_checks()
    assert (network.name, network.state, network.remedy) == (
        "weights phasenet-stream", FAILED, doctor.REINSTALL,
    )  # fmt: skip
    assert "checksum" in network.found
    assert found_detector.state == OK


def test_missing_weights_are_a_red_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied_weights(tmp_path, monkeypatch)
    (folder / "phasenet-stream.json").unlink()
    network, _ = doctor.weights_checks()
    assert network.state == FAILED


def test_a_tampered_detector_is_a_red_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "yunet.onnx"
    shutil.copy(detector.WEIGHTS, copy)
    flip_a_byte(copy)
    monkeypatch.setattr(detector, "WEIGHTS", copy)
    *_, found = doctor.weights_checks()
    assert (found.name, found.state) == ("weights detector", FAILED)
    (speed,) = doctor.speed_checks()  # cannot be measured, and does not raise
    assert speed.state == FAILED


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        if name == "av":
            raise ImportError("no shared library")

    monkeypatch.setattr(doctor.importlib, "import_module", refuse)
    monkeypatch.setattr(doctor, "is_installed", lambda name: name != "torch")
    found = {check.name: check for check in doctor.package_checks()}
    assert found["numpy"].state == OK
    assert (found["av"].state, found["av"].remedy) == (FAILED, "pip install --force-reinstall av")
    assert found["torch"].state == NOTICE
    assert found["torch"].remedy == 'for training: pip install "phase-rppg[train]"'


@pytest.mark.parametrize(("codec", "state"), [("h264", FAILED), ("vp9", NOTICE)])
def test_a_codec_that_does_not_decode_is_named(
    codec: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor.codec_check(codec).state == OK
    monkeypatch.setattr(doctor, "write_clip", lambda path, name: path.write_bytes(b"no video"))
    broken = doctor.codec_check(codec)
    assert broken.state == state
    assert "ffmpeg" in broken.remedy
    monkeypatch.setattr(doctor, "_has_codec", lambda name, mode: mode == "w")
    assert doctor.codec_check(codec).found == "no decoder"
    monkeypatch.setattr(doctor, "_has_codec", lambda name, mode: mode == "r")
    assert "not tested" in doctor.codec_check(codec).found


def test_unknown_codecs_are_recognised() -> None:
    assert doctor._has_codec("h264", "r")
    assert not doctor._has_codec("no-such-codec", "r")


def test_a_camera_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera, "devices", list)
    assert doctor.camera_check().state == NOTICE
    monkeypatch.setattr(camera, "devices", lambda: ["/dev/video0 (Webcam)"])
    assert doctor.camera_check() == Check("camera", OK, "/dev/video0 (Webcam)")


def test_a_slow_computer_gets_advice() -> None:
    def clock(step_s: float) -> Iterator[float]:
        now_s = 0.0
        while True:
            yield now_s
            now_s += step_s

    for step_s, state in ((0.1, OK), (3.0, NOTICE)):
        times = clock(step_s)
        *_, total = doctor.speed_checks(lambda times=times: next(times))  # type: ignore[misc]
        assert (total.name, total.state) == ("speed", state)
    assert "--model pos" in total.remedy


def test_quiet_prints_problems_only(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    some = [Check("numpy", OK, "2.0"), Check("camera", NOTICE, "none", "connect one")]
    monkeypatch.setattr(command, "all_checks", lambda: iter(some))
    assert run(["doctor", "-q"]) == 0
    out, _ = capfd.readouterr()
    assert "numpy" not in out
    assert "connect one" in out
