"""Tiny fake data sets in the layout of each real one, with a known pulse in a drawn face."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phase_rppg.video.encode import write_video

FPS = 30.0
START_NS = 1_392_643_993_642_815_000


@dataclass(frozen=True)
class FaceState:
    """One fake recording: a drawn face and its contact PPG."""

    index: int
    bpm: float
    seconds: float = 6.0
    size: tuple[int, int] = (48, 64)  # height, width
    face: bool = True

    def pulse(self, t_s: np.ndarray) -> np.ndarray:
        """A wave with a slow drift of the rate, so that a shift is detectable."""
        hz = self.bpm / 60
        phase = 2 * np.pi * hz * t_s + 1.5 * np.sin(2 * np.pi * 0.07 * t_s + self.index)
        return np.sin(phase) + 0.3 * np.sin(2 * phase - 0.5)

    @property
    def frame_times_s(self) -> np.ndarray:
        return np.arange(int(self.seconds * FPS)) / FPS

    def frames(self) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(self.index)
        picture, skin = draw(self.size, self.face)
        colour = np.array([0.4, 1.0, 0.6])
        for value in self.pulse(self.frame_times_s):
            lit = picture - skin[..., None] * 2.0 * value * colour  # more blood is darker
            yield np.clip(lit + rng.normal(0, 1.5, picture.shape), 0, 255).astype(np.uint8)


def draw(size: tuple[int, int], face: bool) -> tuple[np.ndarray, np.ndarray]:
    """A picture (H,W,3) of a simple face before a wall, and where its skin is (H,W)."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    u, v = (x - width / 2) / (0.42 * height), (y - height / 2) / (0.42 * height)

    def blob(cx: float, cy: float, rx: float, ry: float) -> np.ndarray:
        return 1 / (1 + np.exp(12 * (np.hypot((u - cx) / rx, (v - cy) / ry) - 1)))

    picture = np.full((height, width, 3), 110.0) + 25 * np.sin(x / 9)[..., None]
    skin = blob(0, 0, 0.72, 1.0) if face else np.zeros((height, width))

    def paint(mask: np.ndarray, colour: tuple[float, float, float]) -> None:
        nonlocal picture
        picture = picture * (1 - mask[..., None]) + mask[..., None] * np.array(colour)

    if face:
        paint(blob(0, -0.25, 0.8, 0.95), (50, 35, 30))
        paint(skin, (205, 155, 130))
        for side in (-1, 1):
            paint(blob(side * 0.3, -0.38, 0.2, 0.05), (70, 45, 40))
            paint(blob(side * 0.3, -0.2, 0.15, 0.08), (240, 240, 240))
            paint(blob(side * 0.3, -0.2, 0.07, 0.08), (40, 25, 20))
            paint(blob(side * 0.1, 0.22, 0.06, 0.04), (120, 75, 65))
        paint(blob(0, 0.1, 0.07, 0.2), (215, 168, 145))
        paint(blob(0, 0.5, 0.28, 0.08), (165, 70, 70))
    return picture, skin


def people(count: int = 3, **changes: object) -> list[FaceState]:
    return [FaceState(i + 1, 60.0 + 15 * i, **changes) for i in range(count)]  # type: ignore[arg-type]


def ubfc_rppg(root: Path, everyone: list[FaceState]) -> None:
    for one in everyone:
        folder = root / f"subject{one.index}"
        write_video(folder / "vid.avi", one.frames(), FPS, codec="mjpeg")
        t_s = one.frame_times_s
        rate = np.full(len(t_s), one.bpm)
        np.savetxt(folder / "ground_truth.txt", np.stack([one.pulse(t_s), rate, t_s]), fmt="%.7e")


def ubfc_rppg_1(root: Path, everyone: list[FaceState]) -> None:
    for one in everyone:
        folder = root / "DATASET_1" / f"{one.index}-gt"
        write_video(folder / "vid.avi", one.frames(), FPS, codec="mjpeg")
        t_s = np.arange(0, one.seconds, 1 / 62)
        columns = [t_s * 1000, np.full(len(t_s), one.bpm), np.full(len(t_s), 97), one.pulse(t_s)]
        np.savetxt(folder / "gtdump.xmp", np.stack(columns, 1), fmt="%.5f", delimiter=",")


def pure(root: Path, everyone: list[FaceState]) -> None:
    import av

    for one in everyone:
        name = f"{one.index:02d}-01"
        folder = root / name / name
        folder.mkdir(parents=True)
        stamps_ns = START_NS + np.round(one.frame_times_s * 1e9).astype(np.int64)
        for stamp_ns, rgb in zip(stamps_ns, one.frames(), strict=True):
            with av.open(str(folder / f"Image{stamp_ns}.png"), "w", format="image2") as output:
                stream = output.add_stream("png", rate=1)
                stream.width, stream.height, stream.pix_fmt = rgb.shape[1], rgb.shape[0], "rgb24"
                for packet in [*stream.encode(av.VideoFrame.from_ndarray(rgb)), *stream.encode()]:
                    output.mux(packet)
        t_s = np.arange(0.004, one.seconds, 1 / 60)
        rows = [
            {"Timestamp": START_NS + round(t * 1e9), "Value": {"waveform": 50 + 30 * v, "pulseRate": 1}}
            for t, v in zip(t_s.tolist(), one.pulse(t_s).tolist(), strict=True)
        ]
        pictures = [{"Timestamp": int(stamp_ns), "Value": {}} for stamp_ns in stamps_ns]
        text = json.dumps({"/FullPackage": rows, "/Image": pictures})
        (root / name / f"{name}.json").write_text(text)


def buaa_mihr(root: Path, everyone: list[FaceState]) -> None:
    from scipy.io import savemat

    for one in everyone:
        for lux in ("1.0", "10.0"):
            folder = root / f"Sub {one.index:02d}" / f"lux {lux}"
            write_video(folder / f"lux{lux}_APH.avi", one.frames(), FPS, codec="mjpeg")
            values = one.pulse(np.arange(0, one.seconds, 1 / 60))
            savemat(folder / f"lux{lux}_PPGData.mat", {"PPG": {"fs": 60.0, "data": values, "peaks": [1]}})


def mmpd_content(one: FaceState) -> dict[str, object]:
    return {
        "video": np.stack(list(one.frames())) / 255.0,
        "GT_ppg": one.pulse(one.frame_times_s)[None],
        "light": "LED-low", "motion": "Stationary", "exercise": "False", "skin_color": 3,
        "gender": "female", "glasser": "True", "hair_cover": "False", "makeup": "False",
    }  # fmt: skip


def mmpd(root: Path, everyone: list[FaceState]) -> None:
    from scipy.io import savemat

    for one in everyone:
        folder = root / f"subject{one.index}"
        folder.mkdir(parents=True)
        savemat(folder / f"p{one.index}_0.mat", mmpd_content(one), do_compression=True)


def folder(root: Path, everyone: list[FaceState]) -> None:
    lines = ["video,reference,subject,light"]
    for one in everyone:
        write_video(root / f"{one.index}.mp4", one.frames(), FPS, crf=12)
        t_s = np.arange(0, one.seconds, 1 / 50)
        rows = [f"{t:.4f},{v:.5f}" for t, v in zip(t_s, one.pulse(t_s), strict=True)]
        (root / f"{one.index}.csv").write_text("\n".join(["t_s,ppg", *rows]))
        lines.append(f"{one.index}.mp4,{one.index}.csv,person {one.index},daylight")
    (root / "manifest.csv").write_text("\n".join(lines) + "\n")


def ubfc_phys(root: Path, everyone: list[FaceState]) -> None:
    for one in everyone:
        folder = root / f"s{one.index}"
        write_video(folder / f"vid_s{one.index}_T2.avi", one.frames(), FPS, codec="mjpeg")
        np.savetxt(
            folder / f"bvp_s{one.index}_T2.csv", one.pulse(np.arange(0, one.seconds, 1 / 64)), fmt="%.5f"
        )
        (folder / f"eda_s{one.index}_T2.csv").write_text("0.1\n")


def scamps(root: Path, everyone: list[FaceState]) -> None:
    import h5py

    root.mkdir(exist_ok=True)
    for one in everyone:
        with h5py.File(root / f"P{one.index:06d}.mat", "w", userblock_size=512) as file:  # MATLAB v7.3
            frames = np.stack(list(one.frames())) / 255.0  # (T,H,W,3), stored with the axes reversed
            file["Xsub"], file["d_ppg"] = frames.transpose(3, 2, 1, 0), one.pulse(one.frame_times_s)[:, None]


def ibvp(root: Path, everyone: list[FaceState]) -> None:
    import av

    for one in everyone:
        name = f"p{one.index:02d}_b"
        folder = root / name / f"{name}_rgb"
        folder.mkdir(parents=True)
        (root / name / f"{name}_t").mkdir()
        for index, rgb in enumerate(one.frames()):
            with av.open(str(folder / f"frame_{index:05d}.bmp"), "w", format="image2") as output:
                stream = output.add_stream("bmp", rate=1)
                stream.width, stream.height, stream.pix_fmt = rgb.shape[1], rgb.shape[0], "bgr24"
                frame = av.VideoFrame.from_ndarray(rgb).reformat(format="bgr24")
                for packet in [*stream.encode(frame), *stream.encode()]:
                    output.mux(packet)
        values = one.pulse(np.arange(0, one.seconds, 1 / 120))
        rows = [f"{value:.5f},{index},0.9,0.8" for index, value in enumerate(values)]
        (root / name / f"{name}_bvp.csv").write_text("\n".join(["bvp,n,SQ1,SQ2", *rows]))


def cohface(root: Path, everyone: list[FaceState]) -> None:
    import h5py

    for one in everyone:
        folder = root / f"{one.index}" / "2"
        write_video(folder / "data.avi", one.frames(), FPS, codec="mjpeg")
        with h5py.File(folder / "data.hdf5", "w") as file:
            t_s = np.arange(0, one.seconds, 1 / 256)
            file["pulse"], file["respiration"], file["time"] = one.pulse(t_s), np.sin(t_s), t_s


def vipl_hr(root: Path, everyone: list[FaceState]) -> None:
    for one in everyone:
        for source in (1, 4):
            folder = root / "data" / f"p{one.index}" / "v3" / f"source{source}"
            write_video(folder / "video.avi", one.frames(), 25.0, codec="mjpeg")  # the header is wrong
            np.savetxt(folder / "time.txt", one.frame_times_s * 1000 + 12, fmt="%.3f")
            values = one.pulse(np.arange(0, one.seconds, 1 / 60))
            (folder / "wave.csv").write_text("\n".join(["Wave", *(f"{v:.4f}" for v in values)]))


def v4v(root: Path, everyone: list[FaceState]) -> None:
    labels = root / "Ground truth" / "BP_raw_1KHz"
    labels.mkdir(parents=True)
    for one in everyone:
        write_video(root / "Videos" / "train" / f"F{one.index:03d}_T8.mkv", one.frames(), FPS, crf=12)
        pressure = 90 + 20 * one.pulse(np.arange(0, one.seconds, 1 / 1000))
        np.savetxt(labels / f"F{one.index:03d}-T8-BP.txt", pressure, fmt="%.3f")


WRITERS: dict[str, Callable[[Path, list[FaceState]], None]] = {
    "ubfc_rppg": ubfc_rppg, "pure": pure, "buaa_mihr": buaa_mihr, "mmpd": mmpd, "folder": folder,
    "ubfc_phys": ubfc_phys, "scamps": scamps, "ibvp": ibvp, "cohface": cohface, "vipl_hr": vipl_hr,
    "v4v": v4v,
}  # fmt: skip
