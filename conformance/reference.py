"""Inputs and outputs of the reference implementation, stage by stage; `write.py` stores them."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

import moving  # beside this script
import numpy as np
import scripted

from phase_rppg.face import crop, detector, skin_mask
from phase_rppg.face.detection_scheduler import detection_due
from phase_rppg.face.tracker import Tracker
from phase_rppg.measurement.result_buffer import ResultBuffer
from phase_rppg.measurement.summary import summarise_faces
from phase_rppg.methods import chrom, pos
from phase_rppg.report import document
from phase_rppg.session import calibration as calibrations
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.gate import gate, in_hindsight
from phase_rppg.session.results import Event, FaceEvent, Result, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.session.skin_sampler import displaced
from phase_rppg.session.window_quality import Window, assess
from phase_rppg.session.window_samples import WindowSamples
from phase_rppg.signal import beat_jitter, beat_timing, filters, hrv, quality, rate, rate_tracking, resample
from phase_rppg.signal.motion_removal import remove_motion
from phase_rppg.signal.rhythm import rhythm
from phase_rppg.types import FloatArray, RgbTrace, Waveform

FPS = 30.0


def make() -> dict[str, Any]:
    """Return the vectors of every stage; the same every time."""
    return {
        "filters": _filters(),
        "resample": _resample(),
        "rate": [_rate(*case) for case in _signals()],
        "track": _track(),
        "windows": [_window(seed) for seed in range(6)],
        "rhythm": _rhythm(),
        "hrv": _hrv(),
        "jitter": _jitter(),
        "crop": [_crop(box) for box in ((3.2, 5.7, 20.0, 20.0), (-6.5, 30.25, 33.3, 33.3), (10, 10, 8, 8))],
        "skin": _skin(),
        "moving": moving.describe(),
        "detect": _detect(),
        "faces": [_faces(seed) for seed in range(4)],
        "film": scripted.describe(),
        "sessions": [
            _session("pos", 72.0, 1.0),
            _session("pos", 72.0, 0.0),
            _session("model", 100.0, 1.5),
            _session("pos", 72.0, 1.0, context_s=4.0),
            _session("model", 100.0, 0.6, context_s=10.0),
            _session("pos", 72.0, 1.0, cut=True),
        ],
    }


def plain(value: Any) -> Any:
    """Return arrays as lists, and pictures as base64."""
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3:
        height, width, _ = value.shape
        return {"height": height, "width": width, "rgb": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.astype(int).tolist() if value.dtype.kind in "bu" else value.tolist())
    return value.item() if isinstance(value, np.generic) else value


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([7, seed])


def pulse(bpm: float, seconds: float, seed: int, noise: float = 0.3, fps: float = FPS) -> FloatArray:
    """A line with its harmonic, drift and noise."""
    rng = _rng(seed)
    t = np.arange(round(seconds * fps)) / fps
    wave = np.sin(2 * np.pi * bpm / 60 * t + 1) + 0.3 * np.sin(4 * np.pi * bpm / 60 * t)
    return wave + noise * rng.standard_normal(len(t)) + 0.2 * t


def _signals() -> list[tuple[FloatArray, float, np.ndarray]]:
    whole = np.ones(300, bool)
    holes = whole.copy()
    holes[100:140] = False
    return [
        (pulse(72, 10, 0), FPS, whole),
        (pulse(110.3, 10, 1, noise=1.5), FPS, whole),
        (pulse(55.5, 10, 2), FPS, holes),
        (pulse(190, 8, 3, fps=25), 25.0, np.ones(200, bool)),
        (pulse(44, 3, 4), FPS, np.ones(90, bool)),
        (np.zeros(300), FPS, whole),
        (_rng(5).standard_normal(300), FPS, whole),
    ]


def _peak(found: rate.Peak | None) -> Any:
    return None if found is None else asdict(found)


def _rate(values: FloatArray, fps: float, valid: np.ndarray) -> Any:
    wave = Waveform(values, fps, 2.5, valid)
    spec = rate.spectrum(wave)
    return {
        "values": values,
        "fps": fps,
        "valid": valid,
        "step_hz": spec.hz[1],
        "power": spec.power[::50],
        "duration_s": spec.duration_s,
        "peak": _peak(rate.spectral_peak(wave)),
        "near_80": _peak(rate.spectral_peak(wave, near_bpm=80)),
        "beats": rate.find_beats(wave, 75.0),
        "beats_own": rate.find_beats(wave),
        "beat_bpm": rate.beat_bpm(rate.find_beats(wave, 75.0)),
    }


def _filters() -> Any:
    values = pulse(80, 6, 10)
    return {
        "values": values,
        "bandpass": filters.bandpass(values, FPS, 0.7, 4.0),
        "line": filters.remove_linear_trend(values),
        "lengths": [[n, filters.fast_length(n)] for n in (1, 2, 7, 100, 301, 3600, 5000)],
    }


def _resample() -> Any:
    rng = _rng(20)
    t_s = 1.5 + np.cumsum(rng.uniform(0.02, 0.05, 60))
    t_s[30:] += 0.8
    values = rng.uniform(0, 255, (60, 3))
    valid = rng.uniform(size=60) > 0.1
    out, start_s, seen = resample.to_uniform(t_s, values, FPS, valid=valid)
    bridged = resample.interpolate_invalid(out, seen)
    return {
        "t_s": t_s,
        "values": values,
        "valid": valid,
        "out": out,
        "start_s": start_s,
        "seen": seen,
        "bridged": bridged,
    }


def _track() -> Any:
    signals = [pulse(70 + 2 * i, 10, 30 + i, noise=0.5 + i / 3) for i in range(8)]
    spectra = [rate.spectrum(values, FPS) for values in signals]
    times_s = [10.0 + i for i in range(8)]
    tracker = rate_tracking.RateTracker()
    causal = [asdict(tracker.update([spec], t)) for spec, t in zip(spectra, times_s, strict=True)]
    peaks = [rate.spectral_peak(values, FPS) for values in signals[:2]]
    return {
        "signals": signals,
        "times_s": times_s,
        "causal": causal,
        "halved": _halved(),
        "together": asdict(rate_tracking.RateTracker().update(spectra[:2], times_s[0])),
        "joint_bpm": rate.joint_bpm([peak for peak in peaks if peak is not None]),
    }


def _halved() -> Any:
    """A rate that halves; its second harmonic continues."""
    turn = 2 * np.pi * 42 / 60 * np.arange(300) / FPS
    signals = [np.cos(2 * turn), np.cos(turn) + 0.9 * np.cos(2 * turn) + 0.6 * np.cos(3 * turn)]
    which = [0] * 6 + [1] * 8
    tracker = rate_tracking.RateTracker()
    spectra = [rate.spectrum(values, FPS) for values in signals]
    return {
        "signals": signals,
        "which": which,
        "causal": [asdict(tracker.update([spectra[k]], 10.0 + i)) for i, k in enumerate(which)],
    }


def _rhythm() -> Any:
    """Regular and irregular beats, noise, and too few beats; a part was not seen."""
    rng = _rng(420)
    runs = []
    for spread, noise in ((0.0, 0.0), (0.2, 0.05), (0.2, 0.3), (0.0, 3.0)):
        beats_s = np.cumsum(0.8 * np.exp(spread * rng.standard_normal(16)))
        phase = np.interp(np.arange(300) / FPS, np.concatenate([[0.0], beats_s]), np.arange(17))
        values = np.cos(2 * np.pi * phase) + 0.3 * np.cos(4 * np.pi * phase + 1.6)
        for seen in (slice(0, 300), slice(60, 300), slice(0, 90)):
            valid = np.zeros(300, bool)
            valid[seen] = True
            wave = Waveform(values + noise * rng.standard_normal(300), FPS, 2.0, valid)
            found = rhythm(wave, 72.0)
            spec = rate.spectrum(wave)
            runs.append(
                {
                    "values": wave.values,
                    "valid": valid,
                    "rhythm": None if found is None else asdict(found),
                    "subharmonic_excess": spec.subharmonic_excess(np.array([40, 76, 100, 130]) / 60),
                }
            )
    return runs


def skin_trace(seed: int, seconds: float = 10.0) -> RgbTrace:
    """A skin colour with a pulse in the channels' usual proportion."""
    rng = _rng(100 + seed)
    beat = pulse(60 + 13 * seed, seconds, 200 + seed, noise=0.05) * (0, 0.3, 0.6, 1.0, 1.0, 0.1)[seed % 6]
    colour = np.array([150.0, 105.0, 85.0])
    values = colour - np.outer(beat, [0.3, 0.8, 0.5]) + 0.15 * rng.standard_normal((len(beat), 3))
    valid = np.ones(len(beat), bool)
    if seed == 2:
        valid[50:90] = False
    return RgbTrace(values, FPS, 3.0, valid)


def _window(seed: int) -> Any:
    rng = _rng(300 + seed)
    trace = skin_trace(seed, 4.0 if seed == 5 else 10.0)
    count = len(trace.values)
    wave = pos.extract(trace)
    flicker = 3.0 if seed == 3 else 0.0
    line = np.sin(2 * np.pi * (60 + 13 * seed) / 60 * np.arange(count) / FPS)
    background = RgbTrace(
        90 + flicker * line[:, None] + 0.2 * rng.standard_normal((count, 3)), FPS, 3.0, trace.valid
    )
    sway = (0.05 if seed == 4 else 0.0) * line[:, None] + 0.002 * rng.standard_normal((count, 2))
    method = "chrom" if seed % 2 else "pos"
    end_s = 3.0 + count / FPS
    samples = WindowSamples(
        trace, None if seed == 1 else background, sway, 0.95, 80.0, 0.01, 29.5, 0.1, end_s
    )
    window = Window(samples, wave, method)
    tracked = rate_tracking.RateTracker().update([rate.spectrum(wave)], 13.0) if seed != 1 else None
    peak, found = assess(window, tracked)
    calibration = calibrations.load(method)
    reading = gate(peak, found, 3.0, 3.0 + count / FPS, calibration=calibration)
    loose = gate(peak, found, 3.0, 3.0 + count / FPS, calibration=calibration, gated=False)
    late_s = 3.0 + count / FPS - calibration.thresholds.memory_s
    alive, forgotten = (
        gate(peak, found, 3.0, 3.0 + count / FPS, calibration=calibration, confident_s=late_s - before_s)
        for before_s in (0.0, 0.1)
    )
    return {
        "skin": trace.values,
        "valid": trace.valid,
        "background": None if seed == 1 else background.values,
        "centre": sway,
        "method": method,
        "pos": wave.values,
        "chrom": chrom.extract(trace).values,
        "remove_motion": remove_motion(wave, sway).values,
        "tracked": None if tracked is None else asdict(tracked),
        "peak": _peak(peak),
        "quality": asdict(found),
        "pulsation": quality.pulsation(trace, 75.0),
        "calibration": asdict(calibration),
        "reading": asdict(reading),
        "ungated": asdict(loose),
        "alive": asdict(alive),
        "forgotten": asdict(forgotten),
    }


def _hrv() -> Any:
    rng = _rng(400)
    runs = []
    for count in (20, 60, 200):
        t = np.cumsum(
            0.85
            + 0.05 * np.sin(2 * np.pi * 0.25 * 0.85 * np.arange(count))
            + 0.01 * rng.standard_normal(count)
        )
        for jitter_s in (0.0, 0.014, 0.016, 0.02):  # none, and enough to take one number after the other
            found = hrv.hrv(t, jitter_s)
            runs.append({"beats": t, "jitter_s": jitter_s, "hrv": None if found is None else asdict(found)})
    return runs


def _jitter() -> Any:
    """Beats of waves with ever more noise; one stretch was not seen."""
    rng = _rng(410)
    t = np.arange(1000) / 30
    runs = []
    for level in (0.0, 0.05, 0.3):
        # The rhythm changes, so that equal intervals are not those of the samples.
        t_warped = t + 0.05 * np.sin(2 * np.pi * 0.2 * t)
        values = np.sin(2 * np.pi * 1.2 * t_warped) + 0.3 * np.sin(4 * np.pi * 1.2 * t_warped + 0.5)
        wave = Waveform(values + level * rng.standard_normal(len(t)), 30.0, 2.0, (t < 12) | (t > 13))
        beats_s = rate.find_beats(wave, 72.0)
        runs.append({"values": wave.values, "valid": wave.valid, "beats": beats_s,
                     "refined": beat_timing.refine_beats(wave, beats_s),
                     "jitter_s": beat_jitter.beat_jitter_s(wave, beats_s)})  # fmt: skip
    return runs


def _picture(height: int = 60, width: int = 80) -> np.ndarray:
    return _rng(500).integers(0, 256, (height, width, 3), dtype=np.uint8)


def _crop(box: crop.Box) -> Any:
    rgb = _picture()
    square = crop.square(box)
    return {
        "rgb": rgb,
        "box": box,
        "square": square,
        "mean": crop.AreaCrop(square, 9, rgb.shape[:2]).mean(rgb),
    }


def _skin() -> Any:
    rgb = np.clip(_picture(64, 80) * 0.2 + np.array([140.0, 100.0, 80.0]), 0, 255).astype(np.uint8)
    face = (20.0, 10.0, 30.0, 40.0)
    marks = np.array([[28.0, 24.0], [42.0, 24.5], [35.0, 32.0], [30.0, 40.0], [40.0, 40.5]])
    square = crop.square(face)
    cells = crop.AreaCrop(square, 16, rgb.shape[:2]).mean(rgb)
    points = skin_mask.background_points(rgb.shape, [face])
    return {
        "rgb": rgb,
        "face": face,
        "landmarks": marks,
        "square": square,
        "weights": skin_mask.skin_weights(cells, square, marks, face),
        "background": skin_mask.background_mean(rgb, points),
        "displaced": displaced(skin_mask.skin_weights(cells, square, marks, face), np.array([1.3, -2.6])),
    }


def _detect() -> Any:
    rng = _rng(600)
    rgb = _picture(70, 97)
    answer, rows = {}, []
    columns = 96 // 8
    for stride in detector.STRIDES:
        across = 96 // stride
        cells = across * (64 // stride)
        one = [
            rng.uniform(0.3, 1, (1, cells, 1)) ** 2,
            rng.uniform(0.3, 1, (1, cells, 1)),
            rng.normal(0, 1, (1, cells, 4)),
            rng.normal(0, 1, (1, cells, 10)),
        ]
        one = [part.astype(np.float32) for part in one]
        answer |= {
            f"{kind}_{stride}": part for kind, part in zip(("cls", "obj", "bbox", "kps"), one, strict=True)
        }
        rows.append(detector._decode(one, stride, across, 0.7))
    del columns
    kept = detector._non_maximum_suppression(np.concatenate(rows))
    return {"rgb": rgb, "decimated": detector.decimate(rgb, 3), "answer": answer, "width": 96, "kept": kept}


def _faces(seed: int) -> Any:
    """Two faces that wander, cross, jitter and vanish for a while."""
    rng = _rng(700 + seed)
    tracker = Tracker()
    steps = []
    for i in range(80):
        t_s = i * 0.1
        due = detection_due(tracker, t_s, 0.05 if seed == 3 else 0.0)
        if not due and i % 7:
            continue
        at = [(100 + 3.0 * i * (seed % 2), 80.0), (400 - 3.0 * i, 80.0 + 10 * (seed // 2))]
        seen = [
            p for k, p in enumerate(at) if not (20 + 9 * seed < i < 36 + 14 * k + 5 * seed and k == seed % 2)
        ]
        found = [
            detector.Detection(
                (x + rng.normal(0, 1), y + rng.normal(0, 1), 60 + rng.normal(0, 1), 80.0),
                0.9 - 0.1 * k,
                np.full((5, 2), x),
            )
            for k, (x, y) in enumerate(seen)
        ]
        changes = tracker.update(t_s, found)
        steps.append(
            {
                "t_s": t_s,
                "due": due,
                "found": [{"box": d.box, "score": d.score} for d in found],
                "changes": {
                    name: [t.id for t in getattr(changes, name)]
                    for name in ("born", "moved", "lost", "found_again", "ended")
                },
                "boxes": [[t.id, t.lost, *t.box] for t in tracker.tracks],
            }
        )
    return {"shift": 0.05 if seed == 3 else 0.0, "steps": steps}


def _session(method: str, bpm: float, strength: float, context_s: float = 0.0, cut: bool = False) -> Any:
    """Return the events of a scripted session; with context also what hindsight adds, as for a file."""
    detector: Any = scripted.ScriptedDetector()
    model = scripted.MeanGreen() if method == "model" else None
    session = Session(SessionConfig(faces="largest", model=model, context_s=context_s), detector)
    gathered = ResultBuffer()
    events: list[Event] = []
    for i, t_s in enumerate(scripted.times_s()):
        events += session.push(scripted.frame(i, t_s, bpm, strength, cut))
    events += session.finish()
    gathered.add(events)
    calibration = calibrations.load(session.config.method)
    for face, windows in gathered.windows.items():
        if context_s:
            for index, reading in in_hindsight(windows, calibration, gathered.lost_s.get(face, ())):
                windows.replace_reading(index, reading)
    faces = summarise_faces(gathered)
    result = Result("film", session.config.method, 19.0, 30.0, session.frame_count, faces, None, ())
    return {
        "method": method,
        "bpm": bpm,
        "strength": strength,
        "context_s": context_s,
        "cut": cut,
        "calibration": asdict(calibration),
        "faces": [[e.face, e.t_s, e.kind] for e in events if isinstance(e, FaceEvent)],
        "windows": [asdict(e) for e in events if isinstance(e, WindowResult)],
        "summaries": [asdict(face.summary) for face in faces],
        "waves": [[face.wave.values, face.wave.valid, face.beats_s] for face in faces],
        "document": _ported(document.document(result)),
        "csv": document.csv_text([result]),
    }


def _ported(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of a document that the page writes as well."""
    faces = []
    for face in found["faces"]:
        summary = {key: face["summary"][key] for key in ("bpm", "low", "high", "p_ok", "p_alive", "reason")}
        faces.append({key: face[key] for key in ("id", "hrv", "windows")} | {"summary": summary})
    return found | {"faces": faces}
