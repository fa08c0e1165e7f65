"""Checks of an installation: packages, codecs, camera, weights and speed.

Each check returns a `Check` with what was found and, unless all is well, what to do about it.
"""

from __future__ import annotations

import importlib
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import EXTRAS, PhaseError, is_installed
from ..types import ByteArray

OK, NOTICE, FAILED = "ok", "notice", "failed"
REINSTALL = "pip install --force-reinstall phase-rppg"
FRAME_MS = 1000 / 30  # time between two frames of a camera
_REQUIRED = ("numpy", "onnxruntime", "av")
_OPTIONAL = {"matplotlib": "plots", "scipy": "data sets and evaluation", "torch": "training"}
# name → (encoder, container, pixel format, options of the encoder)
_CODECS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "h264": ("libx264", "mp4", "yuv420p", {}),
    "hevc": ("libx265", "mp4", "yuv420p", {"x265-params": "log-level=none"}),
    "vp8": ("libvpx", "webm", "yuv420p", {}),
    "vp9": ("libvpx-vp9", "webm", "yuv420p", {}),
    "av1": ("libsvtav1", "mkv", "yuv420p", {}),
    "mjpeg": ("mjpeg", "avi", "yuvj420p", {}),
    "mpeg4": ("mpeg4", "avi", "yuv420p", {}),
    "prores": ("prores_ks", "mov", "yuv422p10le", {}),
}
_NEEDED_CODEC = "h264"  # of nearly all phones and webcams
_CLIP_FRAMES = 8


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    state: str  # OK, NOTICE (something optional is absent) or FAILED (a command does not work)
    found: str
    remedy: str = ""


def checks() -> Iterator[Check]:
    """Yield the results of all checks of this module; they take a few seconds."""
    yield from package_checks()
    for codec in _CODECS:
        yield codec_check(codec)
    yield camera_check()
    yield from weights_checks()
    yield from speed_checks()


def package_checks() -> Iterator[Check]:
    """Yield the versions of this package, Python and the packages that it uses."""
    yield Check("phase-rppg", OK, __version__)
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores"
    yield Check("python", OK, f"{platform.python_version()}, {system}")
    for name in _REQUIRED:
        try:
            importlib.import_module(name)
            yield Check(name, OK, metadata.version(name))
        except (ImportError, metadata.PackageNotFoundError) as error:
            yield Check(
                name, FAILED, f"cannot be imported ({error})", f"pip install --force-reinstall {name}"
            )
    for name, purpose in _OPTIONAL.items():
        if is_installed(name):
            yield Check(name, OK, metadata.version(name))
        else:
            remedy = f'for {purpose}: pip install "phase-rppg[{EXTRAS[name]}]"'
            yield Check(name, NOTICE, "not installed", remedy)


def codec_check(name: str) -> Check:
    """Encode a tiny clip with a codec and decode it as `phase measure` does."""
    import av

    from ..video.decode import VideoFile

    label = f"codec {name}"
    state = FAILED if name == _NEEDED_CODEC else NOTICE
    convert = "convert such videos: ffmpeg -i IN -c:v libx264 -crf 16 OUT.mp4"
    remedy = f"pip install --force-reinstall av, or {convert}"
    encoder, container = _CODECS[name][:2]
    if not _has_codec(name, "r"):
        return Check(label, state, "no decoder", remedy)
    if not _has_codec(encoder, "w"):
        return Check(label, OK, f"decoder present, not tested (no encoder {encoder})")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"clip.{container}"
        try:
            write_clip(file, name)
            count = sum(1 for _ in VideoFile(file).frames())
        except (av.FFmpegError, PhaseError, OSError, ValueError) as error:
            return Check(label, state, f"does not work ({error})".replace(str(file), file.name), remedy)
    if count != _CLIP_FRAMES:
        return Check(label, state, f"{count} of {_CLIP_FRAMES} frames decoded", remedy)
    return Check(label, OK, f"{count} frames decoded")


def write_clip(path: Path, codec: str, frames: int = _CLIP_FRAMES, size: tuple[int, int] = (64, 64)) -> None:
    """Write frames with a moving gradient; `size` is (height, width)."""
    import av

    os.environ.setdefault("SVT_LOG", "1")  # errors only; the AV1 encoder prints its settings otherwise
    encoder, _, pixel_format, options = _CODECS[codec]
    with av.open(str(path), "w") as output:
        stream: Any = output.add_stream(encoder, rate=30, options={"threads": "1", **options})
        stream.height, stream.width = size
        stream.pix_fmt = pixel_format
        for picture in _gradient(frames, size):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def camera_check() -> Check:
    """List the cameras; none is opened."""
    from ..video import camera

    found = camera.devices()
    if not found:
        remedy = "for live measurement: connect a camera and allow its use; videos need none"
        return Check("camera", NOTICE, "none found", remedy)
    return Check("camera", OK, ", ".join(found))


def weights_checks() -> Iterator[Check]:
    """Yield whether the bundled networks and the face detector are complete and unchanged."""
    from .. import infer
    from ..face import detector
    from ..infer import onnx
    from ..session import calibration

    for name in sorted({infer.DEFAULT, *infer.names()}):
        try:
            model = infer.load(onnx.WEIGHTS / f"{name}.json")
            calibration.load(name)
            yield Check(f"weights {name}", OK, f"sha256 {model.manifest.sha256[:12]}… verified")
        except PhaseError as error:
            yield Check(f"weights {name}", FAILED, str(error), REINSTALL)
    try:
        detector.Detector()
        yield Check("weights detector", OK, f"sha256 {detector.SHA256[:12]}… verified")
    except PhaseError as error:
        yield Check("weights detector", FAILED, str(error), REINSTALL)


def speed_checks(clock: Callable[[], float] = time.perf_counter) -> Iterator[Check]:
    """Yield the time per frame of decoding, face detection and the network, and their sum."""
    from .. import infer
    from ..face.detector import Detector
    from ..video.decode import VideoFile

    size, frames = (480, 640), 60
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "speed.mp4"
            write_clip(file, _NEEDED_CODEC, frames, size)
            decode_ms = _per_item_ms(lambda: sum(1 for _ in VideoFile(file).frames()), frames, clock)
        picture, detector = next(_gradient(1, size)), Detector()
        detector.detect(picture)  # the first call allocates memory
        detect_ms = _per_item_ms(lambda: [detector.detect(picture) for _ in range(10)], 10, clock)
        model = infer.load()
        crops = np.zeros((128, model.size, model.size, 3), np.uint8)
        model.step(crops[:32])
        single = [crops[i : i + 1] for i in range(len(crops))]  # as a camera delivers them
        network_ms = _per_item_ms(lambda: [model.step(crop) for crop in single], len(single), clock)
    except Exception as error:  # any failure here is named by another check
        yield Check("speed", FAILED, f"not measured ({error})", "see the lines above")
        return
    yield Check("speed decoding", OK, f"{decode_ms:.1f} ms per frame of 640×480 (H.264)")
    yield Check("speed detector", OK, f"{detect_ms:.1f} ms per detection")
    yield Check("speed network", OK, f"{network_ms:.1f} ms per frame")
    total_ms = decode_ms + detect_ms + network_ms
    text = f"{total_ms:.1f} ms per frame at most; a camera with 30 fps leaves {FRAME_MS:.0f} ms"
    if total_ms > FRAME_MS:
        yield Check("speed", NOTICE, text, "close other programs, or measure with --model pos")
    else:
        yield Check("speed", OK, text)


def _per_item_ms(work: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    start_s = clock()
    work()
    return 1000 * (clock() - start_s) / count


def _has_codec(name: str, mode: str) -> bool:
    import av

    try:
        av.Codec(name, mode)
    except (av.FFmpegError, ValueError):  # UnknownCodecError is a ValueError
        return False
    return True


def _gradient(frames: int, size: tuple[int, int]) -> Iterator[ByteArray]:
    """Yield pictures (H,W,3) u8 of a gradient that moves by one pixel per frame."""
    rows, columns = np.indices(size)
    for shift in range(frames):
        grey = ((rows + columns + shift) % 256).astype(np.uint8)
        yield np.stack([grey, 255 - grey, grey // 2], axis=-1)
