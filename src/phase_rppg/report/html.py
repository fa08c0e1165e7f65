"""One HTML file that explains a result; it needs no other file and no network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from ..fileio import write_text
from ..session.reasons import ADVICE
from ..session.results import FaceResult, Result
from ..types import Estimate
from . import plots
from .document import line, sureness

_STYLE = """
:root { --ink: #1b1f24; --quiet: #66707b; --pulse: #c0392b; --line: #e3e7eb; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; overflow-wrap: anywhere; }
.faces { display: flex; flex-wrap: wrap; gap: 1rem 4rem; margin: 1rem 0; } .faces p { margin: 0; }
.rate { font-size: 2.2rem; font-weight: 650; line-height: 1.2; color: var(--pulse); }
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
    "breaths_per_minute": "Breaths per minute",
}


def save_html(path: str | Path, results: Sequence[Result], failures: Sequence[tuple[str, str]] = ()) -> None:
    """Write the report; whole or not at all."""
    write_text(path, page(results, failures))


def page(results: Sequence[Result], failures: Sequence[tuple[str, str]] = ()) -> str:
    """The report of one or several videos as HTML text; `failures` are (video, why) that could not be
    measured.
    """
    parts = [_overview(results, failures)] if len(results) + len(failures) > 1 else []
    parts += [_video(result) for result in results]
    parts += [f'<h2>{_safe(video)}</h2><p class="warning">{_safe(why)}</p>' for video, why in failures]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Heart rate report</title><style>{_STYLE}</style></head>\n<body><h1>Heart rate report</h1>\n"
        + "\n".join(parts)
        + "\n<footer>Made by phase-rppg. For wellness and research; not a medical device.</footer>"
        + "</body></html>\n"
    )


def _overview(results: Sequence[Result], failures: Sequence[tuple[str, str]]) -> str:
    rows = []
    for result in results:
        for face in result.faces or (None,):
            words = line(face) if face is not None else f"no reading: {result.reason}"
            rows.append((Path(result.video).name, "–" if face is None else str(face.id), words))
    rows += [(Path(video).name, "–", f"not measured: {why}") for video, why in failures]
    body = "".join(
        f"<tr><td>{_safe(a)}</td><td>{_safe(b)}</td><td class=word>{_safe(c)}</td></tr>" for a, b, c in rows
    )
    return f"<table><tr><th>video</th><th>face</th><th class=word>result</th></tr>{body}</table>"


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
    parts.append(plots.svg(result))
    parts += [_windows(face) for face in result.faces]
    return "\n".join(parts)


def _face(face: FaceResult, several: bool) -> str:
    reading = face.summary
    if isinstance(reading, Estimate):
        head = f'<p class="rate">{reading.bpm:.1f} bpm</p>'
        detail = f"{reading.low:.0f}–{reading.high:.0f} bpm, {sureness(reading.p_ok)} sure to be within 5 bpm"
    else:
        head, detail = '<p class="rate none">No reading</p>', f"{reading.reason}: {ADVICE[reading.reason]}"
    who = f'<p class="facts">Face {face.id}</p>' if several else ""
    seen = f'<p class="facts">Seen for {face.seen_s:.1f} s, {face.face_px:.0f} px wide.</p>'
    return f"<section>{who}{head}<p>{_safe(detail)}</p>{seen}{_variability(face)}</section>"


def _variability(face: FaceResult) -> str:
    if face.hrv is None:
        return ""
    cells = [
        (name, f"{value:.2f}" if isinstance(value, float) else "too short or too noisy")
        for key, name in _HRV_NAMES.items()
        for value in [getattr(face.hrv, key)]
        if value is not None or key != "breaths_per_minute"
    ]
    rows = "".join(f"<tr><td>{_safe(name)}</td><td>{_safe(value)}</td></tr>" for name, value in cells)
    title = f"Variability over {face.hrv.beats} beats"
    return f"<details open><summary>{title}</summary><table>{rows}</table></details>"


def _windows(face: FaceResult) -> str:
    rows = []
    for w in face.windows:
        bpm = f"{w.reading.bpm:.1f}" if isinstance(w.reading, Estimate) else "–"
        why = "" if isinstance(w.reading, Estimate) else str(w.reading.reason)
        snr = f"{w.peak.snr_db:.1f}" if w.peak is not None else "–"
        rows.append(
            f"<tr><td>{w.start_s:.1f}–{w.end_s:.1f} s</td><td>{bpm}</td><td>{w.reading.p_ok:.2f}</td>"
            f"<td>{snr}</td><td class=word>{why}</td></tr>"
        )
    head = "<tr><th>window</th><th>bpm</th><th>p_ok</th><th>SNR (dB)</th><th class=word>why not</th></tr>"
    return (
        f"<details><summary>Face {face.id}: all {len(face.windows)} windows</summary>"
        f"<table>{head}{''.join(rows)}</table></details>"
    )


def _safe(text: str) -> str:
    return html.escape(text)
