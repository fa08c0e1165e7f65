"""The parsers under test: each function takes bytes and raises only what its parser documents."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import socket
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import fileio, registry
from phase_rppg.datasets import base, folder, matlab
from phase_rppg.errors import InputError, RecordingError, UsageError
from phase_rppg.infer import graph_check, manifest
from phase_rppg.session import calibration
from phase_rppg.synth import world
from phase_rppg.web import assets, server

ROOT = Path(__file__).parent.parent
SEEDS = Path(__file__).parent / "seeds"  # inputs that failed before
PACKAGE = ROOT / "src" / "phase_rppg"
# Data sets whose reference is one text file, with its name.
DATASET_LABELS = {
    "ibvp": "p01_a_bvp.csv", "pure": "01-01.json", "ubfc_phys": "bvp_s1_T1.csv",
    "ubfc_rppg": "ground_truth.txt", "v4v": "F001-T1-BP.txt", "vipl_hr": "wave.csv",
}  # fmt: skip
LABEL_SUFFIXES = (".csv", ".txt", ".xmp", ".json")


@functools.cache
def _folder() -> Path:
    """A folder for the file under test, in memory if the system has one."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else None
    return Path(tempfile.mkdtemp(prefix="phase-fuzz-", dir=parent))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def label(data: bytes) -> None:
    """A reference; the first byte selects its format."""
    path = _file(f"label{LABEL_SUFFIXES[data[0] % 4 if data else 0]}", data[1:])
    try:
        reference = folder.read_reference(base.Found("s", "s", path, path))
        wave = base.to_waveform("s", reference)
    except InputError:
        return
    assert np.isfinite(wave.values).all()
    assert len(wave.values) == len(wave.valid)


def dataset_label(data: bytes) -> None:
    """The reference of a data set; the first byte selects the data set. One frame file stands for a video."""
    known = sorted(DATASET_LABELS)
    dataset = known[data[0] % len(known) if data else 0]
    path = _file(DATASET_LABELS[dataset], data[1:])
    pictures = _folder() / "pictures"
    pictures.mkdir(exist_ok=True)
    (pictures / "Image1392643993642815000.png").touch()
    found = base.Found("s", "s", pictures, path)
    try:
        reference = registry.load("datasets", dataset).read_reference(found)
        wave = base.to_waveform("s", reference)
    except InputError:
        return
    assert np.isfinite(wave.values).all()
    assert len(wave.values) == len(wave.valid)


def dataset_manifest(data: bytes) -> None:
    """The manifest.csv of a folder; what it accepts is inside the folder."""
    root = _folder() / "root"
    root.mkdir(exist_ok=True)
    (root / "manifest.csv").write_bytes(data)
    try:
        found = base.find("folder", root)
    except InputError:
        return
    for one in found:
        assert one.video.resolve().is_relative_to(root)
        assert one.reference.resolve().is_relative_to(root)


def network_manifest(data: bytes) -> None:
    """The manifest of an exported network."""
    try:
        found = manifest.load_manifest(_file("net.json", data))
    except InputError:
        return
    for shape in found.states.values():
        np.zeros(shape, np.float32)


def recipe(data: bytes) -> None:
    """A training recipe."""
    from phase_rppg.train import recipe as recipes

    try:
        recipes.load_stages(_file("recipe.toml", data))
    except (InputError, UsageError):
        return


def world_recipe(data: bytes) -> None:
    """A recipe of a world of the generator."""
    path = _file("world.toml", data)
    try:
        world.parse(fileio.read_text(path, "toml_mb"), "world")
    except (InputError, UsageError):
        return


def gate_calibration(data: bytes) -> None:
    """A calibration file; what it accepts has usable thresholds."""
    try:
        found = calibration.read(_file("calibration.json", data))
    except InputError:
        return
    limits = found.thresholds
    assert 0 <= limits.kept_alive <= limits.alive <= 1
    assert 0 <= limits.ok <= 1
    assert all(f.std > 0 for model in (found.alive, found.ok) for f in model.features.values())


def checkpoint(data: bytes) -> None:
    """A checkpoint of a training run; the first byte says whether the rest is a file or its header."""
    from phase_rppg.train.checkpoint import load_checkpoint

    whole, rest = (data[0] % 2 == 0 if data else True), data[1:]
    if not whole:
        tensor = {"weights/a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        rest = _safetensors({"__metadata__": {"phase": rest.decode("utf-8", "replace")}, **tensor}, bytes(8))
    try:
        load_checkpoint(_file("x.safetensors", rest)).build_network()
    except InputError:
        return
    raise AssertionError("a checkpoint without the tensors of its network was accepted")


def matlab_v5(data: bytes) -> None:
    """The headers of a MATLAB v5 file, and a video in it."""
    path = _file("p1_0.mat", data)
    if matlab.is_v73(path):
        return
    try:
        matlab.MatVideo(path, "x", 30.0).count()
        for index, _ in enumerate(matlab.MatVideo(path, "x", 30.0).frames()):
            if index > 3:
                break
    except RecordingError:
        return


def onnx_graph(data: bytes) -> None:
    """The check of an ONNX file before it is opened."""
    try:
        graph_check.check_graph(data)
    except graph_check.UnsafeGraph:
        return


def numpy_array(data: bytes) -> None:
    """An array of a cache entry."""
    try:
        fileio.read_array(_file("wave.npy", data), np.float32, (10,))
    except InputError:
        return


@functools.cache
def _page_server() -> server.PageServer:
    page = {"index.html": assets.Asset("text/html", content=b"page")}
    found = server.PageServer(page, 0, request_s=1.0)  # also ends answers that are not read
    found.server_port = server.DEFAULT_PORT  # the port that the inputs name
    return found


def http_request(data: bytes) -> None:
    """The bytes that a client sends to the server of the page."""
    client, other = socket.socketpair()
    with client, other:
        client.settimeout(5)
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            _page_server().RequestHandlerClass(other, ("127.0.0.1", 1), _page_server())
        other.close()
        reply = b""
        with contextlib.suppress(ConnectionResetError):  # the server did not read all of the request
            while part := client.recv(1 << 16):
                reply += part
    assert b"Traceback" not in reply
    assert reply.count(b"HTTP/1.1 ") == reply.count(b"Content-Security-Policy: ")


def _safetensors(header: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _valid_inputs() -> dict[str, list[bytes]]:
    """Valid inputs of every target, from which the mutations start."""
    table = "t_s,ppg\n" + "".join(f"{i / 30:.4f},{i % 7}\n" for i in range(100))
    rows = "\n".join(" ".join(f"{i * row % 9}" for i in range(40)) for row in (1, 2, 3))
    columns = "\n".join(f"{i * 33},70,98,{i % 5}" for i in range(80))
    package = {
        "/FullPackage": [
            {"Timestamp": 10**18 + i * 16666667, "Value": {"waveform": i % 7}} for i in range(150)
        ],
        "/Image": [{"Timestamp": 10**18}],
    }
    npy = io.BytesIO()
    np.save(npy, np.arange(10, dtype=np.float32))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    element = lambda kind, body: struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)  # noqa: E731
    video = element(6, struct.pack("<II", 9, 0)) + element(5, struct.pack("<4i", 5, 4, 4, 3))
    video += element(1, b"video") + element(2, bytes(240))
    header = {"network": {"name": "physnet", "options": {"size": 16}, "size": 16, "fps": 30.0, "frames": 128},
              "format": 2, "provenance": {}}  # fmt: skip
    tensor = {"weights/a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    weights = PACKAGE / "infer" / "weights"
    return {
        "label": [
            b"\x00" + table.encode(), b"\x01" + rows.encode(), b"\x02" + columns.encode(),
            b"\x03" + json.dumps(package).encode(),
        ],
        "dataset_label": [
            b"\x00bvp,time,state,quality\n" + columns.encode(), b"\x01" + json.dumps(package).encode(),
            b"\x02" + rows.replace(" ", "\n").encode(), b"\x03" + rows.encode(),
            b"\x04" + rows.replace(" ", "\n").encode(), b"\x05Wave\n" + rows.replace(" ", "\n").encode(),
        ],
        "dataset_manifest": [b"video,reference,subject,name,light\na.mp4,a.csv,s,1,x\nb.mp4,../b.csv,t,2,\n"],
        "network_manifest": [(weights / "phasenet-stream.json").read_bytes()],
        "recipe": [file.read_bytes() for file in sorted((PACKAGE / "recipes").glob("*.toml"))],
        "world_recipe": [file.read_bytes() for file in sorted((PACKAGE / "recipes/worlds").glob("*.toml"))],
        "gate_calibration": [(PACKAGE / "session" / "calibrations" / "pos.json").read_bytes()],
        "checkpoint": [
            b"\x00" + _safetensors({"__metadata__": {"phase": json.dumps(header)}, **tensor}, bytes(8)),
            b"\x01" + json.dumps(header).encode(),
        ],
        "matlab_v5": [head + element(14, video)],
        "onnx_graph": [(weights / "phasenet-stream.onnx").read_bytes()[:4000]],
        "numpy_array": [npy.getvalue()],
        "http_request": [
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8420\r\n\r\n",
            b"HEAD /?a HTTP/1.1\r\nhost: localhost:8420\r\nContent-Length: 0\r\n\r\nGET /x HTTP/0.9\r\n\r\n",
            b"POST /x?y HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
        ],
    }  # fmt: skip


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        label, dataset_label, dataset_manifest, network_manifest, recipe, world_recipe, gate_calibration,
        checkpoint, matlab_v5, onnx_graph, numpy_array, http_request,
    )
}  # fmt: skip


@functools.cache
def seeds(name: str) -> list[bytes]:
    """Return the valid inputs and the former findings of a target."""
    return _valid_inputs()[name] + [file.read_bytes() for file in sorted((SEEDS / name).glob("*"))]
