"""Crafted input files: small on disk, large or endless for a reader that trusts them."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

SECRET = "root:x:0:0:secret"  # content that no message may repeat
TABLE = "t_s,ppg\n" + "".join(f"{i / 30:.4f},{(i * 37) % 101}\n" for i in range(300))


class RunsCode:
    """An object whose pickle creates the file in $PHASE_ATTACK when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch $PHASE_ATTACK",)


def _v5_element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _v5_file(*elements: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def mat_v5_long_name(path: Path, size: int = 1_600_000_000) -> Path:
    """A variable whose name is declared to have 1.6 GB; compressed, it takes 1.6 MB at most."""
    engine = zlib.compressobj(9)
    flags, shape = _v5_element(6, struct.pack("<II", 6, 0)), _v5_element(5, struct.pack("<ii", 1, 1))
    packed = engine.compress(struct.pack("<II", 14, 2**31) + flags + shape + struct.pack("<II", 1, size))
    packed += engine.compress(bytes(1 << 20)) + engine.flush()
    path.write_bytes(_v5_file(_v5_element(15, packed)))
    return path


def mat_v5_many_samples(path: Path, field: str = "GT_ppg", count: int = 2_000_000_000) -> Path:
    """A variable that declares two thousand million samples and holds none."""
    flags, name = _v5_element(6, struct.pack("<II", 6, 0)), _v5_element(1, field.encode())
    body = flags + _v5_element(5, struct.pack("<ii", 1, count)) + name + struct.pack("<II", 9, 2**32 - 1)
    path.write_bytes(_v5_file(struct.pack("<II", 14, 2**32 - 1) + body))
    return path


def mat_v73_many_samples(path: Path, count: int = 10**8) -> Path:
    """A file of 7 kB whose GT_ppg declares 10⁸ samples that are all the fill value."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("GT_ppg", (1, count), "f8", chunks=(1, 1 << 20), compression="gzip")
        file.create_dataset("video", (3, 8, 8, 300), "u1", chunks=True)
        for name in (
            "light",
            "motion",
            "exercise",
            "skin_color",
            "gender",
            "glasser",
            "hair_cover",
            "makeup",
        ):
            file.create_dataset(name, data=np.array([[1.0]]))
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def mat_v73_loop(path: Path) -> Path:
    """A group PPG that contains itself."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("PPG")
        group["PPG"] = group
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def mat_v5_sparse(path: Path) -> Path:
    """A header, and a hole of 1 TB that takes no space on the disk."""
    path.write_bytes(_v5_file())
    os.truncate(path, 2**40)
    return path


def hdf5_elsewhere(path: Path, way: str) -> Path:
    """A dataset `pulse` whose values are in the file `other` beside it."""
    import h5py

    other, wave = path.with_name("other"), np.sin(np.arange(1100) / 40)
    if way == "external storage":
        other.write_bytes(wave.tobytes())
    else:
        with h5py.File(other, "w") as file:
            file["pulse"] = wave
    with h5py.File(path, "w") as file:
        if way == "external storage":
            file.create_dataset("pulse", wave.shape, "f8", external=[(str(other), 0, wave.nbytes)])
        elif way == "external link":
            file["pulse"] = h5py.ExternalLink(str(other), "/pulse")
        elif way == "soft link":
            file["inner"], file["pulse"] = h5py.ExternalLink(str(other), "/"), h5py.SoftLink("/inner/pulse")
        else:
            layout = h5py.VirtualLayout(wave.shape, "f8")
            layout[:] = h5py.VirtualSource(str(other), "pulse", wave.shape)
            file.create_virtual_dataset("pulse", layout)
    return path


def pth_deflated(path: Path, unpacked_mb: int = 2048) -> Path:
    """A torch archive of 2 MB that unpacks to 2 GB of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}, 2))
        with archive.open("archive/data/0", "w", force_zip64=True) as entry:
            for _ in range(unpacked_mb):
                entry.write(bytes(1 << 20))
    return path


def pth_expanded(path: Path) -> Path:
    """A torch archive of one value that its tensor repeats 3·10⁹ times."""
    import torch

    torch.save({"weight": torch.zeros(1).expand(1000, 1000, 1000, 3)}, path)
    return path


def pth_with_code(path: Path) -> Path:
    """A torch archive whose pickle calls a function."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weight": RunsCode()}, 2))
        archive.writestr("archive/version", "3\n")
    return path


def npy_with_code(path: Path) -> Path:
    """A NumPy file of pickled objects."""
    buffer = io.BytesIO()
    np.save(buffer, np.array([RunsCode()], object), allow_pickle=True)
    path.write_bytes(buffer.getvalue())
    return path


def npy_many_values(path: Path) -> Path:
    """A NumPy file whose header declares 10¹² values."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    return path


def deep_json(path: Path, depth: int = 100_000) -> Path:
    path.write_text("[" * depth + "]" * depth)
    return path


def deep_toml(path: Path, depth: int = 100_000) -> Path:
    path.write_text("a = " + "[" * depth + "]" * depth)
    return path


def dotted_toml(path: Path, parts: int = 200_000) -> Path:
    """A key of many parts, for which the parser needs quadratic time."""
    path.write_text(".".join("a" * parts) + " = 1\n")
    return path


def pure_package(path: Path, stamp: object) -> Path:
    """A label file of PURE whose second timestamp is `stamp`."""
    rows = [{"Timestamp": 10**18 + i * 16_666_667, "Value": {"waveform": i % 7}} for i in range(300)]
    rows[1]["Timestamp"] = stamp  # type: ignore[assignment]
    path.write_text(json.dumps({"/FullPackage": rows, "/Image": [{"Timestamp": 10**18}]}))
    return path


# ---- ONNX, written as protocol buffers by hand, because the package `onnx` refuses some of these


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def onnx_model(nodes: bytes) -> bytes:
    """A model of which the graph has these nodes."""
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, nodes + field(2, "graph"))


def onnx_network(folder: Path, model: bytes, **changes: object) -> Path:
    """Write a model with a manifest that fits it, and return the manifest."""
    import hashlib

    (folder / "net.onnx").write_bytes(model)
    values: dict[str, object] = {
        "name": "net", "file": "net.onnx", "sha256": hashlib.sha256(model).hexdigest(), "fps": 30.0,
        "size": 36, "delay_frames": 0, "states": {}, "mask": [1, 2, 2], "normalise": "none",
        "receptive_frames": 1, "parameters": 1, "parity": 0.0, "format": 1,
    }  # fmt: skip
    (folder / "net.json").write_text(json.dumps(values | changes))
    return folder / "net.json"


def onnx_loop() -> bytes:
    """A Loop of 2⁶⁰ iterations."""
    count = field(1, field(4, "Constant") + field(2, "n") + field(5, field(1, "value_int") + field(3, 2**60)))
    body = field(1, field(1, "i") + field(2, "j") + field(4, "Identity")) + field(2, "body")
    loop = field(1, "n") + field(2, "out") + field(4, "Loop") + field(5, field(1, "body") + field(6, body))
    return onnx_model(count + field(1, loop))


def onnx_custom_operator() -> bytes:
    return onnx_model(field(1, field(2, "x") + field(4, "Shell") + field(7, "evil.ops")))


def onnx_external_data(location: str = "/etc/passwd") -> bytes:
    """A weight whose values are in another file."""
    entry = field(13, field(1, "location") + field(2, location))
    weight = field(1, 16) + field(2, 2) + field(8, "w") + entry + field(14, 1)
    return onnx_model(field(5, weight))


def onnx_huge_tensor() -> bytes:
    """An operator that makes a tensor of 2⁴⁰ values."""
    shape = struct.pack("<q", 2**40)
    tensor = field(1, 1) + field(2, 7) + field(9, shape)
    constant = (
        field(2, "n") + field(4, "Constant") + field(5, field(1, "value") + field(5, tensor) + field(20, 4))
    )
    zeros = field(1, "n") + field(2, "z") + field(4, "ConstantOfShape")
    total = field(1, "z") + field(2, "wave") + field(4, "ReduceSum")
    output = field(1, "wave") + field(2, field(1, field(1, 1) + field(2, b"")))
    sides = b"".join(field(1, field(1, side)) for side in (2, 36, 36, 3))
    pixels = field(1, "pixels") + field(2, field(1, field(1, 2) + field(2, sides)))
    nodes = field(1, constant) + field(1, zeros) + field(1, total)
    return onnx_model(nodes + field(11, pixels) + field(12, output))
