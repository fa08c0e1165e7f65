"""Find faces with YuNet, a detector of a quarter of a megabyte that ships with the package.

W. Wu, H. Peng, S. Yu: YuNet: A Tiny Millisecond-level Face Detector (2023); see weights/NOTICE.txt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import WeightsError
from ..types import ByteArray, FloatArray
from .crop import Box

WEIGHTS = Path(__file__).parent / "weights" / "yunet.onnx"
SHA256 = "21642bd2e3f563a5ff4245f72ff8411c590e764ed8a301b9a9f8111ef551348d"
STRIDES = (8, 16, 32)
MIN_SCORE = 0.7
MAX_OVERLAP = 0.3  # two boxes that share more than this (intersection over union) are one face
LONG_SIDE_PX = 320  # of the picture the detector looks at: faces from a twentieth of the frame's width
SEARCH_SIDES_PX = (320, 640, 1280)  # for small faces in large pictures


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """A face in one picture, in pixels of that picture."""

    box: Box
    score: float  # 0–1
    landmarks: FloatArray  # (5,2) x, y of right eye, left eye, nose tip, right and left mouth corner


class Detector:
    """Finds faces in single pictures; holds the network and nothing else."""

    def __init__(self, min_score: float = MIN_SCORE) -> None:
        import onnxruntime

        self.min_score = min_score
        try:
            model = WEIGHTS.read_bytes()
        except OSError as error:
            raise WeightsError(
                WEIGHTS, f"cannot be read ({error.strerror}); install the package again"
            ) from None
        if hashlib.sha256(model).hexdigest() != SHA256:
            raise WeightsError(
                WEIGHTS, "is not the face detector that was shipped; install the package again"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = (
            False  # pictures come in several sizes: an arena would keep the largest
        )
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._outputs = [f"{kind}_{stride}" for stride in STRIDES for kind in ("cls", "obj", "bbox", "kps")]

    def detect(self, rgb: ByteArray, long_side_px: int = LONG_SIDE_PX) -> list[Detection]:
        """Every face in the picture, the most certain first; the picture is looked at on a smaller scale."""
        step = max(1, round(max(rgb.shape[:2]) / long_side_px))
        found = self._session.run(self._outputs, {"input": _network_input(decimate(rgb, step))})
        padded_width = -(-(rgb.shape[1] // step) // 32) * 32
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
            for row in _without_doubles(rows)
        ]

    def search(self, rgb: ByteArray) -> list[Detection]:
        """Look ever closer until a face is found: for small faces in large pictures."""
        found: list[Detection] = []
        seen_steps = set()
        for side in SEARCH_SIDES_PX:
            step = max(1, round(max(rgb.shape[:2]) / side))
            if step not in seen_steps and not found:
                found = self.detect(rgb, side)
            seen_steps.add(step)
        return found


def decimate(rgb: ByteArray, step: int) -> ByteArray:
    """The picture at 1/step of its size; each pixel is the mean of up to four well-spread ones."""
    if step == 1:
        return rgb
    height, width = rgb.shape[0] // step * step, rgb.shape[1] // step * step
    near, far = step // 4, step - 1 - step // 4
    # Whole rows and whole pixels are moved at once: loops over three colours are slow.
    rows = _middle(rgb[near:height:step], rgb[far:height:step])
    pixels = rows.view("V3")  # (h,W,1)
    left = np.ascontiguousarray(pixels[:, near:width:step]).view(np.uint8)
    right = np.ascontiguousarray(pixels[:, far:width:step]).view(np.uint8)
    return _middle(left, right)


def _middle(a: ByteArray, b: ByteArray) -> ByteArray:
    """The mean of two pictures, rounded down and contiguous."""
    total = a.astype(np.uint16, order="C")
    total += b
    total >>= 1
    return total.astype(np.uint8)


def _network_input(rgb: ByteArray) -> FloatArray:
    """(h,w,3) RGB u8 → (1,3,H,W) BGR f32 with sides padded to multiples of 32."""
    height, width, _ = rgb.shape
    padded = np.zeros((1, 3, -(-height // 32) * 32, -(-width // 32) * 32), dtype=np.float32)
    padded[0, :, :height, :width] = rgb[:, :, ::-1].transpose(2, 0, 1)
    return padded


def _decode(answer: list[FloatArray], stride: int, columns: int, min_score: float) -> FloatArray:
    """One scale of the network's answer as rows (N,15): score, x, y, w, h, five points; anchor-free."""
    cls, obj, boxes, points = answer  # (1,cells,1), (1,cells,1), (1,cells,4), (1,cells,10)
    score = np.sqrt(np.clip(cls[0, :, 0], 0, 1) * np.clip(obj[0, :, 0], 0, 1))  # (cells,)
    kept = np.flatnonzero(score >= min_score)
    cell = np.stack([kept % columns, kept // columns], axis=1)  # (N,2) column, row
    centre = (boxes[0, kept, :2] + cell) * stride
    extent = np.exp(np.minimum(boxes[0, kept, 2:], 10)) * stride
    marks = (points[0, kept].reshape(-1, 5, 2) + cell[:, None]) * stride
    rows = [score[kept, None], centre - extent / 2, extent, marks.reshape(-1, 10)]
    return np.concatenate(rows, axis=1).astype(np.float64)


def _without_doubles(rows: FloatArray) -> list[FloatArray]:
    """Keep the most certain of boxes that overlap."""
    kept: list[FloatArray] = []
    for row in rows[np.argsort(-rows[:, 0], kind="stable")]:
        if all(overlap(tuple(row[1:5]), tuple(other[1:5])) <= MAX_OVERLAP for other in kept):
            kept.append(row)
    return kept


def overlap(a: Box, b: Box) -> float:
    """Intersection over union of two boxes, 0–1."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = max(width, 0.0) * max(height, 0.0)
    return float(shared / (a[2] * a[3] + b[2] * b[3] - shared))
