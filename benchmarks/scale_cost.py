"""Measure what an hour of video costs, and compute machines, money and storage for a million hours.

    python benchmarks/scale_cost.py --measure       # writes benchmarks/results/scale_cost.json
    python benchmarks/scale_cost.py                 # prints the tables of docs/scale.md from that file
    python benchmarks/scale_cost.py --write         # puts them into docs/scale.md

Two drawn videos of different length are measured in processes of their own. The difference of their CPU times
gives the cost of an hour without the start of the program. CPU time depends little on other programs; no
wall-clock time is used. Prices are assumptions and are printed as such.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "results" / "scale_cost.json"
PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- begin: benchmarks/scale_cost.py -->\n", "<!-- end -->\n"
HOURS = 1_000_000
# Assumptions: rounded public list prices of cloud providers, and a common bit rate.
ASSUMED = {
    "usd_per_vcpu_hour": 0.04,
    "usd_per_spot_vcpu_hour": 0.013,
    "usd_per_gb_month": 0.023,
    "video_mbit_per_s": 2.0,
    "machine_vcpus": 64,
    "machine_gbit_per_s": 25.0,
}
METHODS = ("phasenet-stream", "pos")


def write_film(path: Path, seconds: float) -> None:
    """Write a drawn face at 640×480 and 30 frames per second."""
    from drawing import Actor, Film, clock
    from phase_rppg.video.encode import write_video

    actor = Actor(lambda _: (320.0, 240.0), width=200)
    film = Film((actor,), clock(seconds), height=480, width=640)
    write_video(path, (frame.rgb for frame in film.frames()), 30.0, crf=18, preset="veryfast")


def run_measure(video: Path, out: Path, method: str, *more: str) -> tuple[float, float]:
    """Measure one video in a process of its own; return its CPU seconds and its peak memory in MB."""
    script = (
        "import resource, sys\n"
        "from phase_rppg.cli import run\n"
        "code = run(sys.argv[1:])\n"
        "own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "print('peak', own.ru_maxrss + children.ru_maxrss, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["measure", str(video), "-m", method, "--parquet", str(out), "--workers", "0", "--quiet", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, int(done.stderr.split("peak")[1].split()[0]) / 1024


def bytes_per_hour(*, full: bool) -> float:
    """Return the size of the tables for an hour of video, from rows with varying values."""
    from phase_rppg.report import tables

    generator = __import__("random").Random(1)
    place = {"video": "s3://bucket/videos/0123456789.mp4", "key": "0" * 64, "face": 0}
    rates = [60 + 20 * generator.random() for _ in range(3600)]
    windows = [
        place | {"start_s": float(i), "end_s": i + 10.0, "bpm": round(bpm, 2), "low": round(bpm - 2, 2)}
        | {"high": round(bpm + 2, 2), "p_ok": round(generator.random(), 4), "snr_db": round(bpm / 9, 2)}
        for i, bpm in enumerate(rates)
    ]  # fmt: skip
    rows = {"windows": windows}
    if full:
        values = [generator.gauss(0, 1) for _ in range(3600 * 30)]
        rows["waves"] = [place | {"fps": 30.0, "start_s": 0.0, "values": values}]
        rows["beats"] = [
            place | {"time_s": i * 0.83, "ibi_s": round(generator.random(), 4)} for i in range(4300)
        ]
    return float(sum(len(tables.parquet(name, some)) for name, some in rows.items()))


def driver_cpu_s_per_hour() -> float:
    """Return the CPU seconds that the driver needs to take and write the rows of an hour of video."""
    import pickle

    from phase_rppg.report import tables

    place = {"video": "s3://bucket/videos/0123456789.mp4", "key": "0" * 64, "face": 0}
    row = {"start_s": 0.0, "end_s": 10.0, "bpm": 70.0, "low": 68.0, "high": 72.0, "p_ok": 0.9, "snr_db": 5.0}
    rows = {"windows": [place | row | {"start_s": float(i)} for i in range(3600)]}
    packed = pickle.dumps(rows)
    start_s = time.process_time()
    for _ in range(5):
        tables.parquet("windows", pickle.loads(packed)["windows"])
    return (time.process_time() - start_s) / 5


def measure() -> dict[str, Any]:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    short_s, long_s = 15.0, 75.0
    made: dict[str, Any] = {"command": "python benchmarks/scale_cost.py --measure", "size": "640x480, 30 fps"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_film(folder / "short.mp4", short_s)
        write_film(folder / "long.mp4", long_s)
        made["video_kbit_per_s"] = round((folder / "long.mp4").stat().st_size * 8 / long_s / 1000)
        made["methods"] = {}
        for method in METHODS:
            start_s, _ = run_measure(folder / "short.mp4", folder / f"{method}-short", method)
            end_s, peak_mb = run_measure(folder / "long.mp4", folder / f"{method}-long", method)
            per_hour_s = (end_s - start_s) / (long_s - short_s) * 3600
            made["methods"][method] = {
                "cpu_s_per_hour": round(per_hour_s, 1),
                "cpu_s_per_video": round(start_s - per_hour_s * short_s / 3600, 2),
                "peak_memory_mb": round(peak_mb),
            }
        made["table_mb_per_hour"] = round(bytes_per_hour(full=False) / 1e6, 3)
        made["full_table_mb_per_hour"] = round(bytes_per_hour(full=True) / 1e6, 3)
        made["driver_cpu_s_per_hour"] = round(driver_cpu_s_per_hour(), 4)
    return made


def compute(record: dict[str, Any], method: str) -> dict[str, float]:
    """Return what a million hours need with one method, in videos of one hour."""
    cost, machine = record["methods"][method], ASSUMED["machine_vcpus"]
    cpu_hours = HOURS * (cost["cpu_s_per_hour"] + cost["cpu_s_per_video"]) / 3600
    per_vcpu = 3600 / (cost["cpu_s_per_hour"] + cost["cpu_s_per_video"])  # hours of video per hour
    return {
        "vcpu_hours": cpu_hours,
        "machines_for_30_days": cpu_hours / (30 * 24) / machine,
        "usd": cpu_hours * ASSUMED["usd_per_vcpu_hour"],
        "usd_spot": cpu_hours * ASSUMED["usd_per_spot_vcpu_hour"],
        "memory_gb_per_machine": machine * cost["peak_memory_mb"] / 1024,
        "read_gbit_per_machine": machine * per_vcpu * ASSUMED["video_mbit_per_s"] / 1000,
        "driver_vcpus": cpu_hours
        and per_vcpu * record["driver_cpu_s_per_hour"] / 3600,  # per vCPU of workers
    }


def tables(record: dict[str, Any]) -> str:
    """Return the Markdown tables of docs/scale.md."""
    names = list(record["methods"])
    found = {name: compute(record, name) for name in names}
    head = "| | " + " | ".join(f"`{name}`" for name in names) + " |\n|---|" + "---|" * len(names)

    def row(title: str, values: list[str]) -> str:
        return f"| {title} | " + " | ".join(values) + " |"

    measured = [
        row(
            "CPU-seconds per hour of video", [f"{record['methods'][n]['cpu_s_per_hour']:,.0f}" for n in names]
        ),
        row(
            "further CPU-seconds per video, for its start",
            [f"{record['methods'][n]['cpu_s_per_video']:.1f}" for n in names],
        ),
        row("peak memory of a worker in MB", [str(record["methods"][n]["peak_memory_mb"]) for n in names]),
    ]
    computed = [
        row("vCPU-hours", [f"{found[n]['vcpu_hours']:,.0f}" for n in names]),
        row("machines of 64 vCPUs for 30 days", [f"{found[n]['machines_for_30_days']:.1f}" for n in names]),
        row("compute in US$, on demand", [f"{found[n]['usd']:,.0f}" for n in names]),
        row("compute in US$, spot", [f"{found[n]['usd_spot']:,.0f}" for n in names]),
        row("memory per machine in GB", [f"{found[n]['memory_gb_per_machine']:.0f}" for n in names]),
        row("data read per machine in Gbit/s", [f"{found[n]['read_gbit_per_machine']:.1f}" for n in names]),
    ]
    sources_tb = HOURS * 3600 * ASSUMED["video_mbit_per_s"] / 8 / 1e6
    plain, full = record["table_mb_per_hour"] * HOURS / 1e6, record["full_table_mb_per_hour"] * HOURS / 1e6
    month = ASSUMED["usd_per_gb_month"] * 1000
    storage = [
        f"| videos at {ASSUMED['video_mbit_per_s']:g} Mbit/s "
        f"| {sources_tb:,.0f} | {sources_tb * month:,.0f} |",
        f"| tables | {plain:,.2f} | {plain * month:,.0f} |",
        f"| tables with waveforms (`--full`) | {full:,.2f} | {full * month:,.0f} |",
    ]
    workers = min(1 / found[name]["driver_vcpus"] for name in names)
    network = min(ASSUMED["machine_gbit_per_s"] / found[name]["read_gbit_per_machine"] for name in names)
    return "\n".join([
        f"Measured at {record['size']}, one thread:", "", head, *measured, "",
        "Computed for a million hours in videos of one hour:", "", head, *computed, "",
        "| storage for a million hours | TB | US$ per month |", "|---|---|---|", *storage, "",
        f"The driver needs {record['driver_cpu_s_per_hour']:.3f} CPU-seconds per hour of video, "
        f"so one driver serves\nabout {workers:,.0f} vCPUs of workers. A machine with "
        f"{ASSUMED['machine_gbit_per_s']:g} Gbit/s reads at least {network:.1f} times what its\n"
        "workers need.", "",
        f"Assumed: US$ {ASSUMED['usd_per_vcpu_hour']} per vCPU-hour on demand and "
        f"{ASSUMED['usd_per_spot_vcpu_hour']} spot, US$ {ASSUMED['usd_per_gb_month']} per GB and month,\n"
        f"{ASSUMED['video_mbit_per_s']:g} Mbit/s of video. A vCPU, a virtual processor of a rented machine, "
        "is taken as\nthe core that was measured.",
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure again")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    options = parser.parse_args()
    if options.measure:
        RECORD.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    text = tables(json.loads(RECORD.read_text(encoding="utf-8")))
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
