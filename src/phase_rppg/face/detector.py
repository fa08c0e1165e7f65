"""Face detection with YuNet. Its weights (0.25 MB) are bundled with the package.

W. Wu, H. Peng, S. Yu: YuNet: A Tiny Millisecond-level Face Detector (2023); see weights/NOTICE.txt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WeightsError
from ..picture import Picture, YuvPicture
from ..types import ByteArray, FloatArray
from .crop import Box

WEIGHTS = Path(__file__).parent / "weights" / "yunet.onnx"
SHA256 = "21642bd2e3f563a5ff4245f72ff8411c590e764ed8a301b9a9f8111ef551348d"
STRIDES = (8, 16, 32)
MIN_SCORE = 0.7
MAX_OVERLAP = 0.3  # boxes with a larger intersection over union are the same face
LONG_SIDE_PX = 320  # longer side of the network input; finds faces from 1/20 of the frame width
SEARCH_SIDES_PX = (320, 640, 1280)  # for small faces in large pictures


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """A face in one picture, in pixels of that picture."""

    box: Box
    score: float  # 0–1
    landmarks: FloatArray  # (5,2) x, y of right eye, left eye, nose tip, right and left mouth corner


class Detector:
    """Finds faces in single pictures; its only state is the network."""

    def __init__(self, min_score: float = MIN_SCORE) -> None:
        import onnxruntime

        onnxruntime.disable_telemetry_events()
        self.min_score = min_score
        try:
            model = WEIGHTS.read_bytes()
        except OSError as error:
            raise WeightsError(WEIGHTS, f"cannot be read ({error.strerror}); reinstall the package") from None
        if hashlib.sha256(model).hexdigest() != SHA256:
            raise WeightsError(WEIGHTS, "is not the bundled face detector; reinstall the package")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = (
            False  # input sizes vary, and an arena would keep memory for the largest
        )
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._outputs = [f"{kind}_{stride}" for stride in STRIDES for kind in ("cls", "obj", "bbox", "kps")]

    def __reduce__(self) -> tuple[type[Detector], tuple[float]]:
        """Pickle without the network, which is loaded again."""
        return type(self), (self.min_score,)

    def detect(self, picture: Picture, long_side_px: int = LONG_SIDE_PX) -> list[Detection]:
        """Return all faces by falling score; the picture is reduced to about `long_side_px` first."""
        step = max(1, round(max(picture.shape[:2]) / long_side_px))
        found = self._session.run(self._outputs, {"input": _network_input(reduced_planes(picture, step))})
        padded_width = -(-(picture.shape[1] // step) // 32) * 32
        candidates = [
            _decode(found[4 * i : 4 * i + 4], stride, padded_width // stride, self.min_score)
            for i, stride in enumerate(STRIDES)
        ]
        rows = np.concatenate(candidates)  # (N,15) score, box, landmarks
        rows[:, 1:] *= step
        return [
            Detection(
                (float(row[1]), float(row[2]), float(row[3]), float(row[4])),
                float(row[0]),
                row[5:].reshape(5, 2),
            )
            for row in _non_maximum_suppression(rows)
        ]

    def search(self, picture: Picture) -> list[Detection]:
        """Increase the scale until a face is found, for small faces in large pictures."""
        found: list[Detection] = []
        seen_steps = set()
        for side in SEARCH_SIDES_PX:
            step = max(1, round(max(picture.shape[:2]) / side))
            if step not in seen_steps and not found:
                found = self.detect(picture, side)
            seen_steps.add(step)
        return found


def readable_by(detector: Detector, picture: Picture) -> Picture:
    """Return the picture as RGB for a detector of another class, which expects an array."""
    if isinstance(picture, YuvPicture) and not isinstance(detector, Detector):
        return picture.rgb
    return picture


def reduced_planes(picture: Picture, step: int) -> npt.NDArray[Any]:
    """Return red, green and blue (3,h,w) of a picture reduced to 1/step of its size, as in `decimate`."""
    if not isinstance(picture, YuvPicture):
        return decimate(picture, step).transpose(2, 0, 1)
    height, width = picture.shape[0] // step, picture.shape[1] // step
    corners = sorted({step // 4, step - 1 - step // 4})
    yuv = np.empty((3, height, width), np.float32)
    yuv[0] = _spaced_mean(picture.luma, corners, step, (height, width), 0)
    for target, plane in zip(yuv[1:], picture.chroma, strict=True):
        target[:] = _spaced_mean(plane, corners, step, (height, width), 1)
    planes = picture.convert_planes(yuv)
    return np.rint(planes, out=planes)


def _spaced_mean(
    plane: ByteArray, corners: list[int], step: int, shape: tuple[int, int], halvings: int
) -> FloatArray:
    """Return the mean of the pixels at the corners of each cell; halvings is 1 for a plane of half size."""
    if halvings and step % 2 == 0:  # a smaller plane in which cells have whole pixels
        corners, step, halvings = sorted({corner // 2 for corner in corners}), step // 2, 0
    total = np.zeros(shape, np.uint16)
    for top in corners:
        if halvings:
            rows = plane[(top + step * np.arange(shape[0])) >> 1]
        else:
            rows = plane[top : top + step * shape[0] : step]
        for left in corners:
            if halvings:
                total += rows.take((left + step * np.arange(shape[1])) >> 1, axis=1)
            else:
                total += rows[:, left : left + step * shape[1] : step]
    return total * np.float32(1 / len(corners) ** 2)


def decimate(rgb: ByteArray, step: int) -> ByteArray:
    """Reduce an RGB picture to 1/step of its size; each pixel is the mean of up to four spaced pixels."""
    if step == 1:
        return rgb
    height, width = rgb.shape[0] // step * step, rgb.shape[1] // step * step
    near, far = step // 4, step - 1 - step // 4
    # Whole rows and whole pixels are copied at once, because loops over three channels are slow.
    rows = _mean_rounded_down(rgb[near:height:step], rgb[far:height:step])
    pixels = rows.view("V3")  # (h,W,1)
    left = np.ascontiguousarray(pixels[:, near:width:step]).view(np.uint8)
    right = np.ascontiguousarray(pixels[:, far:width:step]).view(np.uint8)
    return _mean_rounded_down(left, right)


def _mean_rounded_down(a: ByteArray, b: ByteArray) -> ByteArray:
    """Return the mean of two pictures, rounded down, as a contiguous array."""
    total = a.astype(np.uint16, order="C")
    total += b
    total >>= 1
    return total.astype(np.uint8)


def _network_input(planes: npt.NDArray[Any]) -> FloatArray:
    """Convert red, green and blue (3,h,w) to (1,3,H,W) BGR f32 with sides padded to multiples of 32."""
    _, height, width = planes.shape
    padded = np.zeros((1, 3, -(-height // 32) * 32, -(-width // 32) * 32), dtype=np.float32)
    padded[0, :, :height, :width] = planes[::-1]
    return padded


def _decode(outputs: list[FloatArray], stride: int, columns: int, min_score: float) -> FloatArray:
    """Decode one anchor-free output scale into rows (N,15): score, x, y, w, h, five landmarks."""
    cls, obj, boxes, points = outputs  # (1,cells,1), (1,cells,1), (1,cells,4), (1,cells,10)
    score = np.sqrt(np.clip(cls[0, :, 0], 0, 1) * np.clip(obj[0, :, 0], 0, 1))  # (cells,)
    kept = np.flatnonzero(score >= min_score)
    cell = np.stack([kept % columns, kept // columns], axis=1)  # (N,2) column, row
    centre = (boxes[0, kept, :2] + cell) * stride
    extent = np.exp(np.minimum(boxes[0, kept, 2:], 10)) * stride
    marks = (points[0, kept].reshape(-1, 5, 2) + cell[:, None]) * stride
    rows = [score[kept, None], centre - extent / 2, extent, marks.reshape(-1, 10)]
    return np.concatenate(rows, axis=1).astype(np.float64)


def _non_maximum_suppression(rows: FloatArray) -> list[FloatArray]:
    """Keep the box with the highest score among overlapping ones."""
    kept: list[FloatArray] = []
    for row in rows[np.argsort(-rows[:, 0], kind="stable")]:
        if all(overlap(tuple(row[1:5]), tuple(other[1:5])) <= MAX_OVERLAP for other in kept):
            kept.append(row)
    return kept


def overlap(a: Box, b: Box) -> float:
    """Return the intersection over union of two boxes, 0–1."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    intersection = max(width, 0.0) * max(height, 0.0)
    return float(intersection / (a[2] * a[3] + b[2] * b[3] - intersection))
