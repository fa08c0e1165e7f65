"""Count the films of still portraits, without any pulse, for which the shipped network shows a rate.

    python benchmarks/face_light.py FACES [--set development] [--out face_light.json] [--windows FILE]

FACES is a folder of portraits (.jpg, .png). Each film shows one of them under changing light: on the face
only, on the background only, light from a screen, beats of mains light; or with a moving camera or a nodding
picture. Light, motion and noise are computed here with numpy, without the generator of this package, so that
no assumption of the generator that trained the network is repeated.

A film is the unit: its windows overlap and share one portrait and one light. `--set` selects the films by
their seed: rules may be designed on `development`, and `test` is only for the final figures. With --out, the
other set of the file is kept. `--windows` writes the features of every window, to design rules.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np

from phase_rppg import measure
from phase_rppg.face.detector import Detector
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.types import Estimate
from phase_rppg.video.encode import write_video

SEEDS = {"development": 1, "test": 2}
PER_KIND = 8
HEIGHT, WIDTH, PORTRAIT_PX = 288, 384, 288  # a width for which x264 is reproducible
FPS, SECONDS = 30.0, 16.0
GAMMA = 2.2
LEVELS = 65_536  # of the sensor; much finer than 8 bits, also near black
AMPLITUDES = (0.003, 0.03)  # of the linear light, half of peak-to-peak
BAND_BPM = (48.0, 150.0)
WHAT = (
    "films of still portraits without a pulse, 16 s each, measured with the shipped network; "
    "the unit is the film"
)


@dataclass
class Scene:
    """One film before the camera: a picture in linear light and its change over time."""

    linear: np.ndarray  # (H,W,3) 0–1
    face: np.ndarray  # (H,W) share of the light on the face, 0–1
    t_s: np.ndarray  # (T,)
    rng: np.random.Generator
    amplitude: float
    bpm: float

    def light(self, where: np.ndarray, wave: np.ndarray, gains: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the picture under light of colour `gains` (3,) that follows `wave` (T,) or (T,3)."""
        share = (where[..., None] * gains).astype(np.float32)  # (H,W,3)
        for value in wave:
            yield self.linear * (1 + share * (self.amplitude * value).astype(np.float32))


def pulse_wave(scene: Scene) -> np.ndarray:
    """Return a wave (T,) of the shape of a pulse, with varying intervals and a second, smaller wave."""
    period_s = 60 / scene.bpm
    beats, now_s = [], -2 * period_s
    while now_s < scene.t_s[-1] + period_s:
        beats.append(now_s)
        now_s += period_s * (1 + 0.03 * scene.rng.standard_normal())
    since = scene.t_s[:, None] - np.array(beats)  # (T,beats)
    first = np.exp(-0.5 * ((since - 0.20 * period_s) / (0.13 * period_s)) ** 2)
    second = np.exp(-0.5 * ((since - 0.55 * period_s) / (0.15 * period_s)) ** 2)
    wave = -(first + 0.4 * second).sum(1)  # more blood absorbs more light
    return unit(wave)


def noise_wave(scene: Scene) -> np.ndarray:
    """Return noise (T,) between 0.7 and 3 Hz."""
    spectrum = np.fft.rfft(scene.rng.standard_normal(len(scene.t_s)))
    hz = np.fft.rfftfreq(len(scene.t_s), 1 / FPS)
    return unit(np.fft.irfft(spectrum * ((hz > 0.7) & (hz < 3)), len(scene.t_s)))


def screen_wave(scene: Scene) -> np.ndarray:
    """Return colours (T,3) of a screen: cuts at irregular times, with drift between them."""
    wave, colour, until_s = [], scene.rng.uniform(-1, 1, 3), 0.0
    for t_s in scene.t_s:
        if t_s >= until_s:
            colour = scene.rng.uniform(-1, 1, 3) * scene.rng.uniform(0.2, 1)
            until_s = t_s + scene.rng.exponential(0.8) + 0.1
        colour = colour + 0.02 * scene.rng.standard_normal(3)
        wave.append(colour)
    return np.array(wave)


def unit(wave: np.ndarray) -> np.ndarray:
    wave = wave - wave.mean()
    return wave / np.abs(wave).max()


def tint(rng: np.random.Generator) -> np.ndarray:
    gains = rng.uniform(0.0, 1.0, 3)
    return gains / gains.max()


WHITE = np.ones(3)


def mains_beat(scene: Scene) -> Iterator[np.ndarray]:
    """A rolling shutter reads rows one after the other, so that the beat moves over the picture."""
    rows_per_cycle = scene.rng.uniform(0.5, 4) * HEIGHT
    row_phase = 2 * np.pi * np.arange(HEIGHT)[:, None, None] / rows_per_cycle
    gains = 1 - scene.rng.uniform(0, 0.3) * np.array([0, 0.5, 1.0])  # lamps flicker less in blue
    for t_s in scene.t_s:
        wave = np.sin(2 * np.pi * scene.bpm / 60 * t_s + row_phase)  # (H,1,1)
        yield scene.linear * (1 + scene.amplitude * gains * wave).astype(np.float32)


def moved(picture: np.ndarray, dx_px: float, dy_px: float) -> np.ndarray:
    """Return the picture moved by fractions of a pixel, by linear interpolation."""
    for axis, shift in ((0, dy_px), (1, dx_px)):
        whole = int(np.floor(shift))
        share = np.float32(shift - whole)
        near, far = np.roll(picture, whole, axis), np.roll(picture, whole + 1, axis)
        picture = (1 - share) * near + share * far
    return picture


def side_light(scene: Scene) -> np.ndarray:
    """Return light (H,W,1) that falls from one side, so that motion changes the brightness of the face."""
    x, y = np.meshgrid(np.linspace(-1, 1, WIDTH), np.linspace(-1, 1, HEIGHT))
    angle = scene.rng.uniform(0, 2 * np.pi)
    light = (1 + 0.4 * (np.cos(angle) * x + np.sin(angle) * y))[..., None] / 1.4
    return light.astype(np.float32)


def pan(scene: Scene) -> Iterator[np.ndarray]:
    light, drift_px = side_light(scene), scene.rng.uniform(-1, 1)
    sway = pulse_wave(scene) * scene.rng.uniform(0.3, 3)
    for t_s, dx_px in zip(scene.t_s, sway, strict=True):
        yield light * moved(scene.linear, dx_px + drift_px * t_s, 0.2 * dx_px)


def nod(scene: Scene) -> Iterator[np.ndarray]:
    """The portrait moves in front of the background."""
    light, sway = side_light(scene), pulse_wave(scene) * scene.rng.uniform(0.3, 3)
    left, right = (WIDTH - PORTRAIT_PX) // 2 + 8, (WIDTH + PORTRAIT_PX) // 2 - 8
    for dy_px in sway:
        picture = scene.linear.copy()
        picture[:, left:right] = moved(scene.linear, 0.3 * dy_px, dy_px)[:, left:right]
        yield light * picture


KINDS: dict[str, Callable[[Scene], Iterator[np.ndarray]]] = {
    "face_white": lambda s: s.light(s.face, pulse_wave(s), WHITE),
    "face_tinted": lambda s: s.light(s.face, pulse_wave(s), tint(s.rng)),
    "background_white": lambda s: s.light(1 - s.face, pulse_wave(s), WHITE),
    "background_tinted": lambda s: s.light(1 - s.face, pulse_wave(s), tint(s.rng)),
    "face_random": lambda s: s.light(s.face, noise_wave(s), tint(s.rng)),
    "face_screen": lambda s: s.light(s.face, screen_wave(s), WHITE),
    "mains_beat": mains_beat,
    "pan": pan,
    "nod": nod,
}


def read_picture(file: Path) -> np.ndarray:
    """Return a portrait (PORTRAIT_PX,PORTRAIT_PX,3) u8."""
    with av.open(str(file)) as container:
        frame = next(container.decode(video=0))
        return frame.reformat(PORTRAIT_PX, PORTRAIT_PX, "rgb24").to_ndarray()


def background(rng: np.random.Generator) -> np.ndarray:
    """Return a smooth random texture (H,W,3) in linear light."""
    coarse = rng.uniform(0.05, 0.5, 3) * rng.uniform(0.6, 1.4, (9, 12, 3))
    rows, columns = np.linspace(0, 8, HEIGHT), np.linspace(0, 11, WIDTH)
    tall = np.stack(
        [[np.interp(rows, np.arange(9), coarse[:, i, c]) for i in range(12)] for c in range(3)]
    )  # (3,12,H)
    wide = np.stack([[np.interp(columns, np.arange(12), row) for row in one.T] for one in tall])  # (3,H,W)
    return wide.transpose(1, 2, 0)


def make_scene(file: Path, rng: np.random.Generator) -> Scene | None:
    """Return the scene of one portrait, or None if no face is found in it."""
    portrait = read_picture(file)
    found = Detector().detect(portrait)
    if not found:
        return None
    left = (WIDTH - PORTRAIT_PX) // 2
    linear = background(rng)
    linear[:, left : left + PORTRAIT_PX] = (portrait / 255) ** GAMMA
    x, y, width, height = found[0].box
    columns, rows = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    radius = np.hypot(
        (columns - left - x - width / 2) / (0.6 * width), (rows - y - height / 2) / (0.6 * height)
    )
    face = np.clip((1.15 - radius) / 0.3, 0, 1)  # a soft edge
    if rng.random() < 0.5:  # light from one side
        face *= 1 - 0.6 * np.clip((columns - left - x) / width, 0, 1)
    return Scene(
        linear.astype(np.float32),
        face.astype(np.float32),
        np.arange(round(SECONDS * FPS)) / FPS,
        rng,
        float(np.exp(rng.uniform(*np.log(AMPLITUDES)))),
        float(rng.uniform(*BAND_BPM)),
    )


def camera(pictures: Iterator[np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield frames (H,W,3) u8: sensor noise that grows with the light, gamma, and rounding."""
    read, shot = rng.uniform(0.002, 0.006), rng.uniform(0.005, 0.015)
    levels = np.rint(255 * (np.arange(LEVELS) / (LEVELS - 1)) ** (1 / GAMMA)).astype(np.uint8)
    for picture in pictures:
        linear = picture.astype(np.float32)
        sigma = np.sqrt(np.float32(read**2) + np.float32(shot**2) * linear)
        noisy = linear + sigma * rng.standard_normal(linear.shape, np.float32)
        yield levels[(np.clip(noisy, 0, 1) * (LEVELS - 1)).astype(np.uint16)]


def measure_film(
    files: list[Path], kind: str, number: int, seed: int, folder: Path
) -> tuple[dict[str, Any], list[Any]]:
    """Make one film, unless it is in the folder, measure it, and return its row and its windows."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind), number])
    scene = None
    while scene is None:
        scene = make_scene(files[int(rng.integers(len(files)))], rng)
    crf = int(rng.integers(10, 24))
    film = folder / f"{seed}-{kind}-{number}.mp4"
    if not film.exists():
        write_video(film, camera(KINDS[kind](scene), rng), FPS, crf=crf, preset="veryfast")
    result = measure(film)
    windows = [window for face in result.faces for window in face.windows]
    shown = [window.reading for window in windows if isinstance(window.reading, Estimate)]
    row = {
        "kind": kind,
        "number": number,
        "amplitude_percent": round(100 * scene.amplitude, 2),
        "modulation_bpm": round(scene.bpm, 1),
        "crf": crf,
        "windows": len(windows),
        "shown": len(shown),
        "shown_bpm": [round(reading.bpm, 1) for reading in shown],
        "highest_p_ok": round(max((window.reading.p_ok for window in windows), default=0.0), 3),
    }
    details = [
        {"kind": kind, "number": number, "p_ok": w.reading.p_ok, "bpm": w.peak.bpm if w.peak else None}
        | {"shown": isinstance(w.reading, Estimate), "quality": dataclasses.asdict(w.quality)}
        for w in windows
    ]
    return row, details


def summarise(films: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = {
        kind: {
            "films": sum(film["kind"] == kind for film in films),
            "with_a_shown_window": sum(film["kind"] == kind and film["shown"] > 0 for film in films),
        }
        for kind in KINDS
    }
    return {
        "films": len(films),
        "with_a_shown_window": sum(film["shown"] > 0 for film in films),
        "without_a_face": sum(film["windows"] == 0 for film in films),
        "by_kind": kinds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("faces", type=Path, help="folder of portraits")
    parser.add_argument("--set", choices=SEEDS, default="development", help="which films")
    parser.add_argument("--per-kind", type=int, default=PER_KIND, help="films of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="may be repeated; default: all")
    parser.add_argument("--films", type=Path, help="keep the films in this folder, to measure them again")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--windows", type=Path, help="write the features of all windows to this JSON file")
    given = parser.parse_args()
    files = sorted(file for file in given.faces.iterdir() if file.suffix in (".jpg", ".png"))
    if not files:
        parser.error(f"no .jpg or .png in {given.faces}")
    films, details = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.films or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for kind in given.kind or KINDS:
            for number in range(given.per_kind):
                row, windows = measure_film(files, kind, number, SEEDS[given.set], folder)
                films.append(row)
                details += windows
                print(json.dumps(row), file=sys.stderr, flush=True)
    found = {"seed": SEEDS[given.set], **summarise(films)}
    print(dump_json(found))
    if given.windows is not None:
        write_json(given.windows, details)
    if given.out is not None:
        document = read_json(given.out) if given.out.exists() else {}
        document["command"] = "python benchmarks/face_light.py FACES --set development|test"
        document["what"] = WHAT
        document[given.set] = {**found, "recordings": films}
        write_json(given.out, document)


if __name__ == "__main__":
    main()
