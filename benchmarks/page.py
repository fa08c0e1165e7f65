"""Write docs/performance.md and its plots from the stored results."""

from __future__ import annotations

import re
import sys
from typing import Any

from phase_rppg.fileio import read_json

from . import store
from .cases import BENCHMARKS
from .processes import ROOT
from .store import Benchmark

PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
_AT = re.compile(r"(CPU s|MB) at (\S+)")


def text(document: dict[str, Any]) -> str:
    """Return the page."""
    stored = document["benchmarks"]
    judged = [(b, f, value) for b in BENCHMARKS for f, value in _figures(b, stored) if f.must is not None]
    met = sum(bool(figure.met(value["median"])) for _, figure, value in judged)
    lines = [
        "# Performance",
        "",
        f"{met} of {len(judged)} figures keep their limits. `python -m benchmarks run` measures them",
        "and writes this page from `benchmarks/results/performance.json`. `python -m benchmarks list`",
        "shows all benchmarks.",
        "",
        "A figure is the median over interleaved rounds, with the smallest and the largest value in",
        "brackets. CPU time is that of whole processes, start included. Bare decoding is a process that",
        "decodes the same clip with PyAV and looks at no picture. Its ratio compares two runs of one round.",
        "The clips are synthetic faces with sensor noise at the bit rates of webcams and phones.",
        "Memory is the largest sum of proportional set sizes of all processes.",
        "",
        "At 640×480 there are two limits for the network: CPU time per frame, and its ratio to bare",
        "decoding. They agree where bare decoding takes 1.5 / 3.5 = 0.43 ms per frame, as it does at about",
        "0.55 Mbit/s. With more bits per frame, decoding itself uses more of the limit in milliseconds, and",
        "that limit is the stricter one. With fewer bits, the limit of the ratio is the stricter one.",
        "",
        *_must_table(stored),
        *_long_runs(),
        *_peer_table(stored),
        *_growth(stored),
        "## Machine",
        "",
        *_machines(stored),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _figures(benchmark: Benchmark, stored: dict[str, Any]) -> list[tuple[store.Figure, dict[str, float]]]:
    quantities = stored.get(benchmark.name, {}).get("quantities", {})
    return [(figure, quantities[figure.name]) for figure in benchmark.figures if figure.name in quantities]


def _must_table(stored: dict[str, Any]) -> list[str]:
    lines = [
        "## Figures and limits",
        "",
        "| work | figure | limit | measured | kept |",
        "|---|---|---|---|---|",
    ]
    for benchmark in BENCHMARKS:
        for figure, value in _figures(benchmark, stored):
            limit = "" if figure.must is None else f"{figure.must[0]} {figure.must[1]:g} {figure.unit}"
            kept = {None: "", True: "yes", False: "**no**"}[figure.met(value["median"])]
            spread = f"{value['median']:.3g} {figure.unit} ({value['smallest']:.3g} … {value['largest']:.3g})"
            lines.append(f"| {benchmark.text} | {figure.text} | {limit} | {spread} | {kept} |")
    return [*lines, ""]


def _long_runs() -> list[str]:
    """Return the figures of the page and of an hour, which other programs of this folder measure."""
    live, soak = (read_json(store.RESULTS.with_name(name)) for name in ("live_speed.json", "soak.json"))
    rows = [
        ("page, whole frame, CPU", "≤ 6 ms", live["cpu_ms_per_frame"], 6, "ms", live),
        ("page, network, mean", "≤ 2.5 ms", live["network_ms_per_frame"]["mean"], 2.5, "ms", live),
        (
            "`phase measure`, memory over an hour",
            "≤ 16 MB",
            soak["video"]["growth_mb"],
            16,
            "MB more",
            soak["video"],
        ),
    ]
    lines = [
        "## Page and long runs",
        "",
        "| work | limit | measured | kept | command |",
        "|---|---|---|---|---|",
    ]
    for text, limit, value, most, unit, source in rows:
        kept = "yes" if value <= most else "**no**"
        lines.append(f"| {text} | {limit} | {value:.3g} {unit} | {kept} | `{source['command']}` |")
    return [*lines, ""]


def _peer_table(stored: dict[str, Any]) -> list[str]:
    rows = [entry for name, entry in stored.items() if name.startswith("peer_")]
    if not rows:
        return []
    lines = [
        "## Other packages",
        "",
        "| package | CPU | peak memory | its network per frame | over ours, limit ≥ 10 × |",
        "|---|---|---|---|---|",
    ]
    for entry in rows:
        values = {name: value["median"] for name, value in entry["quantities"].items()}
        network = ["", ""]
        if "network ms" in values:
            network = [f"{values['network ms']:.3g} ms", f"{values['network ratio']:.3g} ×"]
        cells = [entry["text"], f"{values['CPU s']:.3g} s", f"{values['MB']:.4g} MB", *network]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _growth(stored: dict[str, Any]) -> list[str]:
    """Return one table for each growth benchmark, and the plot of all of them."""
    if not any(benchmark.axis and benchmark.name in stored for benchmark in BENCHMARKS):
        return []
    lines = ["## Growth", "", "![CPU time and memory against what varies](images/performance.png)", ""]
    for benchmark in BENCHMARKS:
        if benchmark.axis is None or benchmark.name not in stored:
            continue
        points = growth_points(stored[benchmark.name])
        lines += [f"**{benchmark.text[0].upper()}{benchmark.text[1:]}** ({benchmark.axis}):", ""]
        lines += ["| | " + " | ".join(f"{x:g}" for x in points["CPU s"]) + " |"]
        lines += ["|---|" + "---|" * len(points["CPU s"])]
        for name, unit in (("CPU s", "CPU s"), ("MB", "peak MB")):
            lines.append(f"| {unit} | " + " | ".join(f"{y:.3g}" for y in points[name].values()) + " |")
        lines.append("")
    return lines


def growth_points(entry: dict[str, Any]) -> dict[str, dict[float, float]]:
    """Return CPU seconds and memory by the value that varies."""
    points: dict[str, dict[float, float]] = {"CPU s": {}, "MB": {}}
    for name, value in entry["quantities"].items():
        if found := _AT.fullmatch(name):
            points[found[1]][float(found[2])] = value["median"]
    return points


def _machines(stored: dict[str, Any]) -> list[str]:
    """Return the machines, commits and loads of the stored runs."""
    seen: dict[str, list[str]] = {}
    for name, entry in stored.items():
        facts = entry["machine"]
        libraries = ", ".join(f"{library} {version}" for library, version in facts["libraries"].items())
        machine = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}, {libraries}"
        seen.setdefault(machine, []).append(f"{name} (commit {entry['commit']}, load {entry['load']:g})")
    lines = []
    for machine, runs in seen.items():
        lines += [f"- {machine}.", *(f"    - {run}" for run in runs)]
    return [*lines, "", "A load above the number of cores means that other programs ran at the same time."]


def plot(document: dict[str, Any]) -> None:
    """Draw CPU time and memory of all growth benchmarks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [b for b in BENCHMARKS if b.axis is not None and b.name in document["benchmarks"]]
    if not shown:
        return
    figure, axes = plt.subplots(2, len(shown), figsize=(3 * len(shown), 5), squeeze=False)
    for column, benchmark in enumerate(shown):
        points = growth_points(document["benchmarks"][benchmark.name])
        for row, (name, label) in enumerate((("CPU s", "CPU time in s"), ("MB", "peak memory in MB"))):
            axis = axes[row][column]
            axis.plot(list(points[name]), list(points[name].values()), "o-")
            axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
            if not column:
                axis.set_ylabel(label)
            if row:
                axis.set_xlabel(f"{benchmark.axis}")
            else:
                axis.set_title(benchmark.text, fontsize=9)
    figure.tight_layout()
    figure.savefig(IMAGES / "performance.png", dpi=100)
    plt.close(figure)


def write() -> int:
    """Write the page and its plots."""
    document = store.load()
    PAGE.write_text(text(document), encoding="utf-8")
    plot(document)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def check() -> int:
    """Return 0 if the page is current, otherwise 1 with a message."""
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text(store.load()):
        return 0
    print("docs/performance.md is not current: run `python -m benchmarks page`", file=sys.stderr)
    return 1
