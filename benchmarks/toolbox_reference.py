"""The formulas of rPPG-Toolbox, written down a second time without any code of this package.

    X. Liu et al., "rPPG-Toolbox: Deep Remote PPG Toolbox", NeurIPS 2023 (Datasets and Benchmarks)

    python benchmarks/toolbox_reference.py UBFC -o toolbox.npz [--toolbox FOLDER --version COMMIT]

runs the steps before the formulas in an environment of its own with OpenCV 4, NumPy and SciPy, because the
face detector of rPPG-Toolbox is not part of OpenCV 5: decoding, the face box, and the colours of the crops.
With `--toolbox`, the rows of `toolbox_stages.py` also come from the code of rPPG-Toolbox itself: face box,
crop, label, method and metrics. FOLDER is a checkout of https://github.com/ubicomplab/rPPG-Toolbox, which
needs NumPy 1.

`benchmarks/toolbox_parity.py` compares the convention `toolbox` with these functions. They follow the
published formulas step by step, with dense matrices and explicit loops, and use OpenCV, NumPy and SciPy. The
functions of `phase_rppg` for the same quantities use banded solvers, FFTs and shared helpers.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, signal

Array = NDArray[np.float64]
LOW_HZ, HIGH_HZ, SMOOTHING = 0.6, 3.3, 100.0
FPS = 30  # an integer, as in the configurations of rPPG-Toolbox
TOOLBOX_NAMES = {
    "green": "GREEN", "ica": "ICA_POH", "chrom": "CHROME_DEHAAN", "pos": "POS_WANG", "pbv": "PBV",
    "lgi": "LGI", "omit": "OMIT",
}  # fmt: skip


# ---- video and labels --------------------------------------------------------------------------------------


def read_frames(video: Path) -> NDArray[np.uint8]:
    """Return all frames (T,H,W,3) as RGB, decoded by OpenCV in their order."""
    capture, frames = cv2.VideoCapture(str(video)), []
    while True:
        found, picture = capture.read()
        if not found:
            return np.array(frames)
        frames.append(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))


def read_label(text_file: Path, count: int) -> Array:
    """Return the first line of a UBFC-rPPG label, stretched to one value per frame."""
    values = np.array([float(word) for word in text_file.read_text().splitlines()[0].split()])
    wanted = np.linspace(1, len(values), count)
    return np.interp(wanted, np.linspace(1, len(values), len(values)), values)


def crop(frames: NDArray[np.uint8], face: tuple[float, ...], side: int = 72) -> Array:
    """Return the same part of every frame, 1.5 times a square face box, as (T,side,side,3)."""
    x, y, width, height = face
    length = max(width, height)
    x, y = x + (width - length) / 2, y + (height - length) / 2
    left, top = int(max(0, x - 0.25 * length)), int(max(0, y - 0.25 * length))
    right = min(left + int(1.5 * length), frames.shape[2])
    bottom = min(top + int(1.5 * length), frames.shape[1])
    return np.array(
        [
            cv2.resize(picture[top:bottom, left:right], (side, side), interpolation=cv2.INTER_AREA)
            for picture in frames
        ],
        float,
    )


def diff_normalised(frames: Array) -> Array:
    """Return relative changes over their standard deviation in the whole video; the last frame is zero."""
    changes = np.zeros_like(frames)
    for t in range(len(frames) - 1):
        changes[t] = (frames[t + 1] - frames[t]) / (frames[t + 1] + frames[t] + 1e-7)
    return changes / np.std(changes[:-1])


def diff_label(label: Array) -> Array:
    """Return differences of the label over their standard deviation, with a last zero."""
    steps = label[1:] - label[:-1]
    return np.concatenate([steps / np.std(steps), [0.0]])


def face_box(picture: NDArray[np.uint8]) -> tuple[float, ...]:
    """Return the widest face box of the Haar cascade of OpenCV 4."""
    cascade = Path(cv2.data.haarcascades) / "haarcascade_frontalface_default.xml"
    faces = cv2.CascadeClassifier(str(cascade)).detectMultiScale(picture)
    return tuple(float(n) for n in faces[np.argmax(faces[:, 2])])


def crops_of(root: Path, out: Path, toolbox: Path | None = None, version: str = "") -> None:
    """Write the digest of all frames, the face box and the colours (T,3) of every recording of UBFC-rPPG.

    With a checkout of rPPG-Toolbox, also write (rate, true rate, SNR, MACC) by its code for every method.
    """
    judge_by_toolbox = None if toolbox is None else toolbox_code(toolbox)
    found = {"opencv": np.array(cv2.__version__), "version": np.array(version)}
    for folder in sorted(root.glob("subject*")):
        frames = read_frames(next(folder.glob("vid.*")))
        face = face_box(frames[0])
        digest = hashlib.sha256()
        for frame in frames:
            digest.update(frame.tobytes())
        found[f"{folder.name}/sha256"] = np.array(digest.hexdigest())
        found[f"{folder.name}/face"] = np.array(face)
        found[f"{folder.name}/colours"] = crop(frames, face).mean((1, 2))
        if judge_by_toolbox is not None:
            label = np.array(
                [float(n) for n in (folder / "ground_truth.txt").read_text().split("\n")[0].split()]
            )
            rows = judge_by_toolbox(frames, label)
            found |= {f"{folder.name}/toolbox/{name}": np.array(row) for name, row in rows.items()}
    np.savez_compressed(out, **found)


def toolbox_code(checkout: Path) -> Callable[[NDArray[np.uint8], Array], dict[str, list[float]]]:
    """Return a function from frames and label to (rate, true rate, SNR, MACC) by method, by rPPG-Toolbox."""
    sys.path.insert(0, str(checkout))
    os.chdir(checkout)  # it opens the cascade by a relative path
    post_process = importlib.import_module("evaluation.post_process")
    loader_class = importlib.import_module("dataset.data_loader.BaseLoader").BaseLoader
    loader = object.__new__(loader_class)  # its constructor wants a prepared data set

    def judged(frames: NDArray[np.uint8], samples: Array) -> dict[str, list[float]]:
        # face detection by HC on the first frame, box enlarged by 1.5, no median box
        images = loader.crop_face_resize(frames, True, "HC", True, 1.5, False, FPS, False, 72, 72)
        label = loader.resample_ppg(samples, len(frames))
        images, label = np.float32(images), np.float32(label)  # as __getitem__ does
        rows = {}
        for name, own in TOOLBOX_NAMES.items():
            method = getattr(importlib.import_module(f"unsupervised_methods.methods.{own}"), own)
            wave = method(images, FPS) if name in ("ica", "chrom", "pos") else method(images)
            truth_bpm, bpm, snr, largest = post_process.calculate_metric_per_video(
                wave, label, fs=FPS, diff_flag=False, hr_method="FFT"
            )
            rows[name] = [float(number) for number in (bpm, truth_bpm, snr, largest)]
        return rows

    return judged


# ---- rate, SNR, MACC, errors -------------------------------------------------------------------------------


def detrended(values: Array) -> Array:
    """Return values − (I + λ²DᵀD)⁻¹ values, with the matrix written out."""
    return values - smoother(len(values)) @ values


@functools.lru_cache(maxsize=4)
def smoother(count: int) -> Array:
    """Return (I + λ²DᵀD)⁻¹ with second differences D."""
    second = np.zeros((count - 2, count))
    for row in range(count - 2):
        second[row, row : row + 3] = 1, -2, 1
    return np.linalg.inv(np.eye(count) + SMOOTHING**2 * (second.T @ second))


def filtered(values: Array, fps: float) -> Array:
    """Return the detrended values in the band of heart rates, first order, forwards and backwards."""
    b, a = signal.butter(1, [2 * LOW_HZ / fps, 2 * HIGH_HZ / fps], btype="bandpass")
    return signal.filtfilt(b, a, detrended(values).astype(np.double))


def spectrum(values: Array, fps: float) -> tuple[Array, Array]:
    """Return the periodogram, padded to a power of two, without removal of the mean."""
    size = 1
    while size < len(values):
        size *= 2
    return signal.periodogram(values, fs=fps, nfft=size, detrend=False)


def rate_bpm(clean: Array, fps: float) -> float:
    """Return 60 times the frequency of the largest bin in the band."""
    hz, power = spectrum(clean, fps)
    best, best_power = 0.0, -1.0
    for frequency, value in zip(hz, power, strict=True):
        if LOW_HZ <= frequency <= HIGH_HZ and value > best_power:
            best, best_power = frequency, value
    return 60 * best


def snr_db(clean: Array, truth_bpm: float, fps: float) -> float:
    """Return the power within 0.1 Hz of the true rate and of twice the rate over the rest of the band."""
    hz, power = spectrum(clean, fps)
    line = rest = 0.0
    for frequency, value in zip(hz, power, strict=True):
        near = [n for n in (1, 2) if n * truth_bpm / 60 - 0.1 <= frequency <= n * truth_bpm / 60 + 0.1]
        if near:
            line += value * len(near)
        elif LOW_HZ <= frequency <= HIGH_HZ:
            rest += value
    return 10 * math.log10(line / rest)


def macc(clean: Array, label: Array) -> float:
    """Return the largest |correlation| with the label delayed by 0 … T − 2 frames in a circle."""
    count = min(len(clean), len(label))
    left, right = clean[:count], label[:count]
    return max(abs(np.corrcoef(left, np.roll(right, lag))[0, 1]) for lag in range(count - 1))


def judge(prediction: Array, label: Array, fps: float, *, difference: bool = False) -> dict[str, float]:
    """Return rate, true rate, SNR and MACC of one recording."""
    if difference:
        prediction, label = np.cumsum(prediction), np.cumsum(label)
    ours, theirs = filtered(prediction, fps), filtered(label, fps)
    truth_bpm = rate_bpm(theirs, fps)
    return {
        "bpm": rate_bpm(ours, fps),
        "truth_bpm": truth_bpm,
        "snr_db": snr_db(ours, truth_bpm, fps),
        "macc": macc(ours, theirs),
    }


def errors(rows: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """Return every metric of a table row with its standard error."""
    bpm, truth = (np.array([row[key] for row in rows]) for key in ("bpm", "truth_bpm"))
    count, error = len(rows), np.abs(bpm - truth)
    found = {
        "MAE": (error.mean(), error.std() / math.sqrt(count)),
        "RMSE": (math.sqrt((error**2).mean()), math.sqrt(np.std(error**2) / math.sqrt(count))),
        "MAPE": (100 * (error / truth).mean(), 100 * (error / truth).std() / math.sqrt(count)),
    }
    if np.ptp(bpm) > 0 and np.ptp(truth) > 0:
        r = float(np.corrcoef(bpm, truth)[0, 1])
        found["R"] = (r, math.sqrt((1 - r**2) / (count - 2)))
    for name, key in (("SNR", "snr_db"), ("MACC", "macc")):
        values = np.array([row[key] for row in rows])
        found[name] = (values.mean(), values.std() / math.sqrt(count))
    return {name: (float(value), float(error)) for name, (value, error) in found.items()}


# ---- classical methods on the mean colour (T,3) of the crop ------------------------------------------------


def green(colours: Array, fps: float) -> Array:
    del fps
    return colours[:, 1]


def ica(colours: Array, fps: float) -> Array:
    """Return the source of JADE with the highest share of its power in one bin, 0.7–2.5 Hz."""
    channels = []
    for column in colours.T:
        smooth = detrended(column)
        channels.append((smooth - np.mean(smooth)) / np.std(smooth))
    sources = jade(np.array(channels))
    shares = []
    for source in sources:
        power = np.abs(np.fft.fft(source)[1:]) ** 2
        power = power[: len(power) // 2]
        shares.append(np.max(power / np.sum(power)))
    b, a = signal.butter(3, [2 * 0.7 / fps, 2 * 2.5 / fps], btype="bandpass")
    return signal.filtfilt(b, a, sources[int(np.argmax(shares))])


def jade(mixtures: Array) -> Array:
    """Return independent sources (n,T): Cardoso's JADE with the n most significant eigenmatrices."""
    n, count = mixtures.shape
    white = np.linalg.inv(np.real(linalg.sqrtm(mixtures @ mixtures.T / count))) @ mixtures
    second = white @ white.T / count
    tensor = np.zeros((n, n, n, n))
    for i, j, k, m in np.ndindex(n, n, n, n):
        tensor[i, j, k, m] = (
            np.mean(white[i] * white[j] * white[k] * white[m])
            - second[i, j] * second[k, m]
            - second[i, k] * second[j, m]
            - second[i, m] * second[j, k]
        )
    values, vectors = np.linalg.eigh(tensor.reshape(n * n, n * n))
    chosen = sorted(range(n * n), key=lambda i: -abs(values[i]))[:n]
    matrices = [abs(values[i]) * vectors[:, i].reshape(n, n) for i in chosen]
    rotation, turned = np.eye(n), True
    while turned:
        turned = False
        for p in range(n - 1):
            for q in range(p + 1, n):
                pairs = np.array([[m[p, p] - m[q, q], m[p, q] + m[q, p]] for m in matrices])
                _, axes = np.linalg.eigh(pairs.T @ pairs)
                x, y = axes[:, 1] * (1 if axes[0, 1] >= 0 else -1)
                c = math.sqrt(0.5 + x / 2)
                s = 0.5 * y / c
                if abs(s) > 0.01 / math.sqrt(count):
                    turned = True
                    givens = np.eye(n)
                    givens[[p, q, p, q], [p, q, q, p]] = c, c, -s, s
                    rotation = rotation @ givens
                    matrices = [givens.T @ m @ givens for m in matrices]
    return rotation.T @ white


def chrom(colours: Array, fps: float) -> Array:
    """Return half-overlapping Hann windows of 1.6 s, each normalised and filtered, without the rest."""
    length = math.ceil(1.6 * fps)
    length += length % 2
    half = length // 2
    windows = (len(colours) - half) // half
    total = np.zeros(half * (windows + 1))
    b, a = signal.butter(3, [2 * 0.7 / fps, 2 * 2.5 / fps], btype="bandpass")
    for number in range(windows):
        part = colours[number * half : number * half + length]
        part = part / np.mean(part, axis=0)
        x = signal.filtfilt(b, a, 3 * part[:, 0] - 2 * part[:, 1])
        y = signal.filtfilt(b, a, 1.5 * part[:, 0] + part[:, 1] - 1.5 * part[:, 2])
        wave = (x - np.std(x) / np.std(y) * y) * signal.windows.hann(length)
        total[number * half : number * half + length] += wave
    return total


def pos(colours: Array, fps: float) -> Array:
    """Return the overlap-added windows that end before a frame, detrended, 0.75–3 Hz."""
    count, length = len(colours), math.ceil(1.6 * fps)
    total = np.zeros(count)
    for end in range(length, count):
        part = colours[end - length : end] / np.mean(colours[end - length : end], axis=0)
        one, two = part[:, 1] - part[:, 2], part[:, 1] + part[:, 2] - 2 * part[:, 0]
        wave = one + np.std(one) / np.std(two) * two
        total[end - length : end] += wave - np.mean(wave)
    b, a = signal.butter(1, [2 * 0.75 / fps, 2 * 3.0 / fps], btype="bandpass")
    return signal.filtfilt(b, a, detrended(total))


def pbv(colours: Array, fps: float) -> Array:
    """Compute in single precision, as rPPG-Toolbox does; the result depends on its rounding."""
    del fps
    single = np.float32(colours)
    relative = np.array([channel / np.mean(single, axis=0)[c] for c, channel in enumerate(single.T)])  # (3,T)
    signature = np.std(relative, axis=1) / np.sqrt(np.sum(np.var(relative, axis=1)))
    weights = np.linalg.solve(np.matmul(relative, relative.T), signature)
    return np.float64(np.matmul(relative.T, weights) / np.matmul(signature, weights))


def lgi(colours: Array, fps: float) -> Array:
    del fps
    main = np.linalg.eigh(colours.T @ colours)[1][:, -1:]  # the first left singular vector
    return ((np.eye(3) - main @ main.T) @ colours.T)[1]


def omit(colours: Array, fps: float) -> Array:
    del fps
    first = colours[0][:, None] / np.linalg.norm(colours[0])  # the first column of Q in a QR decomposition
    return ((np.eye(3) - first @ first.T) @ colours.T)[1]


METHODS: dict[str, Callable[[Array, float], Array]] = {
    "green": green, "ica": ica, "chrom": chrom, "pos": pos, "pbv": pbv, "lgi": lgi, "omit": omit,
}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Decode and crop the videos of UBFC-rPPG as rPPG-Toolbox.")
    parser.add_argument("root", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--toolbox", type=lambda text: Path(text).resolve(), help="checkout of rPPG-Toolbox")
    parser.add_argument("--version", default="", help="commit of the checkout, for the record")
    arguments = parser.parse_args()
    crops_of(arguments.root.resolve(), arguments.out.resolve(), arguments.toolbox, arguments.version)
