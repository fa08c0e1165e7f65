"""HTML reports; each is one file without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import MissingPackageError, is_installed
from ..fileio import write_text
from ..session.reasons import ADVICE
from ..session.results import FaceResult, Result
from ..signal.breathing import MIN_SECONDS, Breathing, BreathingReason
from ..signal.hrv import HrvLimit
from ..text import REPORT_POLICY, counted, html_text, printable
from ..types import Estimate
from . import plots
from .document import changes, confidence_text, face_text, reading_text
from .picture import data_uri

_STYLE = """
:root { --ink: #1b1f24; --quiet: #66707b; --pulse: #c0392b; --line: #e3e7eb; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; overflow-wrap: anywhere; }
.faces { display: flex; flex-wrap: wrap; gap: 1rem 4rem; margin: 1rem 0; } .faces p { margin: 0; }
.rate { font-size: 2.2rem; font-weight: 650; line-height: 1.2; color: var(--pulse); }
img { width: 96px; height: 96px; border-radius: 8px; flex: none; }
.face { display: flex; gap: 1rem; align-items: flex-start; margin-bottom: .6rem; }
.none { color: var(--quiet); } .facts { color: var(--quiet); }
.warning { border-left: 4px solid #e0a100; padding: .2rem .8rem; background: #fff8e3; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.word, th.word { text-align: left; }
svg { width: 100%; height: auto; } details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--quiet); }
footer { margin: 3rem 0 1rem; color: var(--quiet); border-top: 1px solid var(--line); padding-top: .8rem; }
"""
_HRV_NAMES = {
    "rmssd_ms": "RMSSD (ms)",
    "sdnn_ms": "SDNN (ms)",
    "pnn50": "pNN50",
    "lf_hf": "LF/HF",
}
_NO_BREATHING = {
    BreathingReason.NO_BEATS: "there are no regular beats",
    BreathingReason.TOO_SHORT: f"at least {MIN_SECONDS:.0f} s of beats are needed",
    BreathingReason.UNCLEAR: "beats, colour and motion show no common rate",
}


def save_html(path: str | Path, results: Sequence[Result], failures: Sequence[tuple[str, str]] = ()) -> None:
    """Write the report atomically."""
    write_text(path, page(results, failures))


def page(results: Sequence[Result], failures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report as HTML text; `failures` are pairs of a video and the error message."""
    parts = [_overview(results, failures)] if len(results) + len(failures) > 1 else []
    parts += [_video(result) for result in results]
    parts += [
        f'<h2>{_safe(video)}</h2><p class="warning">{_safe(problem)}</p>' for video, problem in failures
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{REPORT_POLICY}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Heart rate report</title><style>{_STYLE}</style></head>\n<body><h1>Heart rate report</h1>\n"
        + "\n".join(parts)
        + "\n<footer>Made by phase-rppg. For wellness and research; not a medical device.</footer>"
        + "</body></html>\n"
    )


def _overview(results: Sequence[Result], failures: Sequence[tuple[str, str]]) -> str:
    names = _distinct_names([result.video for result in results] + [video for video, _ in failures])
    rows = []
    for result in results:
        for face in result.faces or (None,):
            text = face_text(face) if face is not None else f"no reading: {result.reason}"
            rows.append((names[result.video], "–" if face is None else str(face.id), text))
    rows += [
        (names[video], "–", f"not measured: {problem.removeprefix(f'{printable(video)}: ')}")
        for video, problem in failures
    ]
    body = "".join(
        f"<tr><td>{_safe(a)}</td><td>{_safe(b)}</td><td class=word>{_safe(c)}</td></tr>" for a, b, c in rows
    )
    return f"<table><tr><th>video</th><th>face</th><th class=word>result</th></tr>{body}</table>"


def _distinct_names(videos: Sequence[str]) -> dict[str, str]:
    """Return the file name of each video, or the whole name if two files have the same name."""
    short = {video: Path(video).name for video in videos}
    return short if len(set(short.values())) == len(short) else {video: video for video in videos}


def _video(result: Result) -> str:
    parts = [f"<h2>{_safe(Path(result.video).name)}</h2>"]
    parts.append(
        f'<p class="facts">{result.duration_s:.1f} s · {result.fps:.2f} frames per second · '
        f"{result.frame_count} frames · method {_safe(result.method)}</p>"
    )
    parts += [f'<p class="warning">{_safe(warning)}</p>' for warning in result.warnings]
    if not result.faces:
        advice = ADVICE[result.reason] if result.reason is not None else ""
        parts.append(
            f'<p class="rate none">No reading</p><p>{_safe(str(result.reason))}: {_safe(advice)}</p>'
        )
        return "\n".join(parts)
    several = len(result.faces) > 1
    parts.append('<div class="faces">' + "".join(_face(face, several) for face in result.faces) + "</div>")
    parts.append(_plots(result))
    parts += [_windows(face, several) for face in result.faces]
    return "\n".join(parts)


def _plots(result: Result) -> str:
    if not is_installed("matplotlib"):
        return f'<p class="facts">No plots: {_safe(str(MissingPackageError("matplotlib")))}</p>'
    return plots.svg(result)


def _face(face: FaceResult, several: bool) -> str:
    reading = face.summary
    if not isinstance(reading, Estimate):
        text = reading_text(reading, face.advice).removeprefix("no reading: ")
        head, detail = '<p class="rate none">No reading</p>', text[0].upper() + text[1:]
    elif changes(reading):
        head = f'<p class="rate">{reading.range_low:.0f}–{reading.range_high:.0f} bpm</p>'
        detail = f"median {reading.bpm:.1f} bpm, {confidence_text(reading.p_ok)}"
    else:
        head = f'<p class="rate">{reading.bpm:.1f} bpm</p>'
        detail = f"{reading.low:.0f}–{reading.high:.0f} bpm, {confidence_text(reading.p_ok)}"
    place = f", {face.position}" if face.position else ""
    label = f'<p class="facts">Face {face.id}{_safe(place)}</p>' if several else ""
    visible = f'<p class="facts">Visible for {face.seen_s:.1f} s, {face.face_px:.0f} px wide.</p>'
    text = f"<div>{label}{head}<p>{_safe(detail)}</p>{visible}</div>"
    body = _breathing(face) + _variability(face)
    return f'<section><div class="face">{_thumbnail(face)}{text}</div>{body}</section>'


def _thumbnail(face: FaceResult) -> str:
    if face.thumbnail is None:
        return ""
    return f'<img alt="Face {face.id}" src="{data_uri(face.thumbnail)}">'


def _breathing(face: FaceResult) -> str:
    """Return the breathing rate of a face with a heart rate."""
    if not isinstance(face.summary, Estimate):
        return ""
    reading = face.breathing
    if isinstance(reading, Breathing):
        interval = f"{reading.low:.0f}–{reading.high:.0f}"
        return f'<p class="facts">Breathing: {reading.per_minute:.1f} per minute ({interval}).</p>'
    return f'<p class="facts">No breathing rate: {_safe(_NO_BREATHING[reading.reason])}.</p>'


def _variability(face: FaceResult) -> str:
    limits = {name: limit_text(limit) for name, limit in face.hrv_limits.items()}
    if face.hrv is None:
        has_reading = isinstance(face.summary, Estimate)
        reason = limits.get("rmssd_ms", "")
        return f'<p class="facts">No heart rate variability: {_safe(reason)}.</p>' * bool(
            reason and has_reading
        )
    cells = [
        (name, f"{value:.2f}" if isinstance(value, float) else limits.get(key, "unknown"))
        for key, name in _HRV_NAMES.items()
        for value in [getattr(face.hrv, key)]
    ]
    rows = "".join(f"<tr><td>{_safe(name)}</td><td>{_safe(value)}</td></tr>" for name, value in cells)
    title = f"Heart rate variability over {face.hrv.beats} beats"
    return f"<details open><summary>{title}</summary><table>{rows}</table></details>"


def limit_text(limit: HrvLimit) -> str:
    """Return which limit of heart rate variability failed, and how far."""
    value, needed = limit.value, limit.needed
    if limit.name == "jitter_s":
        timed = (
            "the timing error of the beats is unknown"
            if value is None
            else (f"the timing error of the beats is {1000 * value:.0f} ms")
        )
        return f"{timed}, at most {1000 * needed:.0f} ms are allowed"
    if limit.name == "normal_share":
        return (
            f"{100 * (value or 0):.0f} % of the beat intervals are regular, {100 * needed:.0f} % are needed"
        )
    if limit.name == "duration_s":
        return f"{value or 0:.0f} s of beats, {needed:.0f} s are needed"
    return f"{counted(round(value or 0), 'beat')}, {needed:.0f} are needed"


def _windows(face: FaceResult, several: bool) -> str:
    rows = []
    for w in face.windows:
        bpm = f"{w.reading.bpm:.1f}" if isinstance(w.reading, Estimate) else "–"
        interval = f"{w.low:.0f}–{w.high:.0f}" if w.low is not None and w.high is not None else ""
        reason = "" if isinstance(w.reading, Estimate) else str(w.reading.reason)
        snr = f"{w.peak.snr_db:.1f}" if w.peak is not None else "–"
        rows.append(
            f"<tr><td>{w.start_s:.1f}–{w.end_s:.1f} s</td><td>{bpm}</td><td>{interval}</td>"
            f"<td>{w.reading.p_ok:.2f}</td>"
            f"<td>{snr}</td><td class=word>{reason}</td></tr>"
        )
    titles = "".join(f"<th>{title}</th>" for title in ("window", "bpm", "interval", "p_ok", "SNR (dB)"))
    head = f"<tr>{titles}<th class=word>reason</th></tr>"
    title = f"{f'Face {face.id}: all' if several else 'All'} {counted(len(face.windows), 'window')}"
    return f"<details><summary>{title}</summary><table>{head}{''.join(rows)}</table></details>"


def _safe(text: str) -> str:
    return html_text(text)
