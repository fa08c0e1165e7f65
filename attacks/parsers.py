"""Attacks on the readers of files. Each function returns the message of the refusal."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phase_rppg import fileio
from phase_rppg.datasets import base, cache, matlab
from phase_rppg.errors import PhaseError

from . import crafted_files as crafted


class Succeeded(Exception):
    """The attack reached its aim."""


def refusal(read: Callable[[], Any]) -> str:
    """Return the message of the error that a reader raises."""
    try:
        read()
    except PhaseError as error:
        return str(error)
    raise Succeeded("the file was accepted")


def _without_code(folder: Path, read: Callable[[], Any]) -> str:
    """Check that a reader refuses a file and does not run the code in it."""
    mark = folder / "attacked"
    os.environ["PHASE_ATTACK"] = str(mark)
    message = refusal(read)
    if mark.exists():
        raise Succeeded("the file ran code")
    return message


def pickle_in_pth(folder: Path) -> str:
    """A published state dict whose pickle calls a function."""
    from phase_rppg.nn.published_weights import read_published

    path = crafted.pth_with_code(folder / "w.pth")
    return _without_code(folder, lambda: read_published(path))


def pickle_in_npy(folder: Path) -> str:
    """An array of a cache entry that holds pickled objects."""
    crafted.npy_with_code(folder / "wave.npy")
    entry = cache.Entry(folder, "d", "s", "n", {}, "k", 30.0, 8, 1, 0.0, 1.0)
    return _without_code(folder, lambda: entry.wave)


def npy_bomb(folder: Path) -> str:
    """An array that declares 4 TB."""
    crafted.npy_many_values(folder / "wave.npy")
    return refusal(lambda: cache.Entry(folder, "d", "s", "n", {}, "k", 30.0, 8, 1, 0.0, 1.0).wave)


def zip_bomb(folder: Path) -> str:
    """A `.pth` file of 2 MB that unpacks to 2 GB."""
    from phase_rppg.nn.published_weights import read_published

    path = crafted.pth_deflated(folder / "w.pth")
    return refusal(lambda: read_published(path))


def mat_v73_bomb(folder: Path) -> str:
    """A MATLAB v7.3 file of 7 kB that declares 10⁸ samples."""
    path = crafted.mat_v73_many_samples(folder / "p1_0.mat")
    return refusal(lambda: matlab.read("p1_0", path, ("GT_ppg",)))


def mat_v5_bomb(folder: Path) -> str:
    """A MATLAB v5 file with a variable name of 1.6 GB."""
    path = crafted.mat_v5_long_name(folder / "p1_0.mat")
    return refusal(lambda: matlab.read("p1_0", path, ("GT_ppg",)))


def onnx_loop(folder: Path) -> str:
    """A network with a loop of 2⁶⁰ iterations."""
    return _load_network(folder, crafted.onnx_loop())


def onnx_custom_operator(folder: Path) -> str:
    """A network with an operator of a foreign library."""
    return _load_network(folder, crafted.onnx_custom_operator())


def onnx_external_data(folder: Path) -> str:
    """A network whose weights are read from /etc/passwd."""
    return _load_network(folder, crafted.onnx_external_data())


def onnx_huge_tensor(folder: Path) -> str:
    """A network that allocates 4 TB."""
    return _load_network(folder, crafted.onnx_huge_tensor())


def _load_network(folder: Path, model: bytes) -> str:
    from phase_rppg.infer import load

    path = crafted.onnx_network(folder, model)
    return refusal(lambda: load(path))


def traversal_by_manifest(folder: Path) -> str:
    """A data set whose manifest names a label outside its folder."""
    (folder / "secret.csv").write_text(crafted.SECRET)
    root = folder / "root"
    root.mkdir()
    (root / "link.csv").symlink_to(folder / "secret.csv")
    message = ""
    for name in ("../secret.csv", str(folder / "secret.csv"), "link.csv"):
        (root / "manifest.csv").write_text(f"video,reference\nv.mp4,{name}\n")
        message = refusal(lambda: base.find("folder", root))
        _refuse_leak(message)
    return message


def content_in_message(folder: Path) -> str:
    """A label that is a link to a secret file: the message must not quote it."""
    (folder / "secret").write_text(f"{crafted.SECRET}\n")
    (folder / "label.txt").symlink_to(folder / "secret")
    message = refusal(lambda: base.read_table("x", folder / "label.txt"))
    _refuse_leak(message)
    return message


def _refuse_leak(message: str) -> None:
    if crafted.SECRET in message:
        raise Succeeded("the message quotes the secret file")


def device_as_label(folder: Path) -> str:
    """A label that is a link to /dev/zero."""
    (folder / "label.txt").symlink_to("/dev/zero")
    return refusal(lambda: base.read_table("x", folder / "label.txt"))


def fifo_as_video(folder: Path) -> str:
    """A video that is a FIFO without a writer."""
    from phase_rppg.video.probe import probe

    os.mkfifo(folder / "v.mp4")
    return refusal(lambda: probe(folder / "v.mp4"))


def symlink_swap(folder: Path) -> str:
    """Another program replaces the output by a link to a victim while the output is written."""
    victim, target = folder / "victim", folder / "out.json"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            link = folder / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(victim)
            os.replace(link, target)

    victim.write_text("unchanged")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(500):
            fileio.write_text(target, f"{number}")
            if victim.read_text() != "unchanged":
                raise Succeeded("the output was written through the link")
    finally:
        stop.set()
        thread.join()
    return "the link was replaced 500 times, its target was not written"


ATTACKS: dict[str, Callable[[Path], str]] = {
    attack.__name__: attack
    for attack in (
        pickle_in_pth, pickle_in_npy, npy_bomb, zip_bomb, mat_v73_bomb, mat_v5_bomb, onnx_loop,
        onnx_custom_operator, onnx_external_data, onnx_huge_tensor, traversal_by_manifest,
        content_in_message, device_as_label, fifo_as_video, symlink_swap,
    )
}  # fmt: skip
