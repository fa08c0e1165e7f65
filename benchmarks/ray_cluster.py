"""Kill workers and the driver of a Ray run, and compare one worker with two.

    python benchmarks/ray_cluster.py --out benchmarks/results/ray_cluster.json [--videos 24] [--only faults]

A cluster with two nodes of one CPU each runs on this machine. The first run measures videos into Parquet
tables; one worker process is killed while it works, later the driver. The second run continues with
`--resume`. Every video must then be in the tables exactly once, also in the table of windows.

The throughput is that of the job of `phase measure --parquet` on warm workers, with one and with two of them
in turn. Each node has a core of its own: without this, one worker and its decoder would use both cores at
times. Wall-clock time is affected by other programs on the machine, so the load is recorded beside it. The
first job of a run starts about half a second late, so a run must be much longer than that.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Small parts, so that the driver is killed between two of them.
DRIVER = (
    "from phase_rppg.report import tables; tables.PART_VIDEOS = 3; from phase_rppg.cli import main; main()"
)


def make_videos(folder: Path, count: int) -> None:
    """Write one drawn face several times; trailing bytes make each file different."""
    sys.path.insert(0, str(ROOT / "tests"))
    from cli.filmset import FilmSet

    (folder / "source").mkdir(parents=True)
    content = FilmSet(folder / "source").face().read_bytes()
    (folder / "videos").mkdir()
    for number in range(count):
        extra = b"\0\0\0\x10free" + number.to_bytes(8, "big")  # an empty box of MP4
        (folder / "videos" / f"{number:04d}.mp4").write_bytes(content + extra)


def worker_processes(driver: int) -> list[int]:
    """Return the processes of Ray that run a job now, from their names."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != driver:
            try:
                name = (entry / "cmdline").read_bytes().split(b"\0")[0]
            except OSError:
                continue
            if name.startswith(b"ray::_run"):
                found.append(int(entry.name))
    return found


def stored(out: Path) -> int:
    import pyarrow.parquet as pq

    parts = out.glob("videos/*/part-*.parquet")  # not the hidden file of an unfinished write
    return sum(pq.read_metadata(part).num_rows for part in parts)


def start_driver(folder: Path, address: str, log: Path) -> subprocess.Popen[bytes]:
    words = [
        "measure",
        "videos",
        "--parquet",
        "out",
        "--resume",
        "--engine",
        "ray",
        "--address",
        address,
        "--json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words], cwd=folder, env=environment, stdout=log.open("wb")
    )


def wait_until(condition: Any, driver: subprocess.Popen[bytes], most_s: float = 300) -> None:
    start_s = time.monotonic()
    while not condition():
        if driver.poll() is not None or time.monotonic() - start_s > most_s:
            raise SystemExit(f"the driver ended ({driver.poll()}) or took too long")
        time.sleep(0.05)


def run_faults(folder: Path, address: str, videos: int) -> dict[str, Any]:
    """Kill a worker and the driver, continue, and count the rows of every video."""
    import duckdb

    out = folder / "out"
    driver = start_driver(folder, address, folder / "first.json")
    wait_until(lambda: stored(out) >= 3 and worker_processes(driver.pid), driver)
    killed = worker_processes(driver.pid)[0]
    os.kill(killed, signal.SIGKILL)
    at_worker = stored(out)
    wait_until(lambda: stored(out) >= at_worker + 3 and stored(out) >= videos // 3, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    at_driver = stored(out)
    second = start_driver(folder, address, folder / "second.json")
    code = second.wait(timeout=600)
    summary = json.loads((folder / "second.json").read_text())

    def counts(table: str, what: str) -> Counter[Any]:
        query = f"select {what} from read_parquet('{out}/{table}/*/*.parquet')"
        return Counter(duckdb.sql(query).fetchall())

    per_video, windows = counts("videos", "video"), counts("windows", "video, face, start_s")
    faces = counts("faces", "video, face")
    result = {
        "videos": videos,
        "stored_when_a_worker_was_killed": at_worker,
        "stored_when_the_driver_was_killed": at_driver,
        "second_run": {
            key: summary[key] for key in ("measured", "measured_before", "with_reading", "failed")
        },
        "exit_code": code,
        "lost": videos - len(per_video),
        "doubled": sum(n > 1 for table in (per_video, windows, faces) for n in table.values()),
        "windows_per_video": sorted({sum(1 for v, *_ in windows if v == name) for (name,) in per_video}),
    }
    result["passed"] = (
        code == 0 and result["lost"] == result["doubled"] == 0
        and 0 < at_worker < at_driver < videos
        and len(result["windows_per_video"]) == 1
        and summary["measured_before"] == at_driver and not summary["failed"]
    )  # fmt: skip
    return result


def keep_to_the_core_of_this_node() -> None:
    """Let this process and its decoder use one core, another one on each node, as on separate machines."""
    import ray

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        return  # an earlier job did this
    nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Resources"].get("CPU"))
    os.sched_setaffinity(0, {cores[nodes.index(ray.get_runtime_context().get_node_id()) % len(cores)]})


def measure_with_times(work: Any, video: Any) -> tuple[float, float]:
    """Measure a video; return the duration, and the CPU time of this process and of its decoder."""
    import resource

    keep_to_the_core_of_this_node()

    def used_s() -> float:
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    start_s, start_cpu_s = time.monotonic(), used_s()
    work(video, ())
    return time.monotonic() - start_s, used_s() - start_cpu_s


def wait_with_times(seconds: float) -> tuple[float, float]:
    time.sleep(seconds)
    return seconds, 1.0  # any constant: the job has no CPU time that could grow with the workers


def run_jobs_timed(work: Any, jobs: list[Any], workers: int, address: str) -> dict[str, float]:
    """Run the jobs; `busy` is the share of the time of all workers in which a job runs."""
    from phase_rppg.workers import Engine, run_jobs

    start_s, driver_s, busy_s, cpu_s = time.monotonic(), time.process_time(), 0.0, 0.0
    for outcome in run_jobs(work, jobs, workers, engine=Engine("ray", address)):
        assert outcome.error is None, outcome.error
        busy_s, cpu_s = busy_s + outcome.result[0], cpu_s + outcome.result[1]
    wall_s = time.monotonic() - start_s
    return {
        "wall_s": round(wall_s, 2),
        "busy": round(busy_s / workers / wall_s, 3),
        "cpu_s_per_job": round(cpu_s / len(jobs), 3),
        "driver_cpu_s_per_job": round((time.process_time() - driver_s) / len(jobs), 4),
    }


def compare_workers(work: Any, jobs: list[Any], rounds: int, address: str) -> dict[str, Any]:
    """Run the jobs with one and with two workers in turn, on warm workers.

    `ratio_of_work` is the ratio if every job takes its CPU time. Other programs hardly affect it: they
    lengthen the jobs, but they do not leave a worker without a job.
    """
    run_jobs_timed(work, jobs[:2], 2, address)  # starts the workers
    made = []
    for _ in range(rounds):
        one, two = (run_jobs_timed(work, jobs, workers, address) for workers in (1, 2))
        expected = 2 * two["busy"] / one["busy"] * one["cpu_s_per_job"] / two["cpu_s_per_job"]
        load = round(os.getloadavg()[0], 2)
        made.append({"one": one, "two": two, "ratio_of_work": round(expected, 2), "load": load})
    ratios = sorted(each["one"]["wall_s"] / each["two"]["wall_s"] for each in made)
    return {
        "jobs": len(jobs), "rounds": made, "best_ratio": round(ratios[-1], 2),
        "median_ratio": round(statistics.median(ratios), 2),
        "lowest_ratio_of_work": min(each["ratio_of_work"] for each in made),
    }  # fmt: skip


def run_throughput(folder: Path, address: str, rounds: int) -> dict[str, Any]:
    """Measure the same videos with one and with two workers.

    Jobs that only wait show the engine alone: they need no CPU, so that other programs do not matter.
    """
    import ray

    from phase_rppg.measurement.batch import FaceChoice, find_videos
    from phase_rppg.measurement.measure import MeasureOptions
    from phase_rppg.report.tables import TableJob
    from phase_rppg.workers import Job

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    videos = find_videos([folder / "videos"])[0]
    measuring = [
        Job(video.name, (TableJob(MeasureOptions(), FaceChoice()), video.absolute())) for video in videos
    ]
    waiting = [Job(str(number), (0.5,)) for number in range(24)]
    result = {
        "cpus": os.cpu_count(),
        "load_average_1_min_before": round(os.getloadavg()[0], 2),
        "jobs_that_wait": compare_workers(wait_with_times, waiting, rounds, address),
        "videos_of_11_s": compare_workers(measure_with_times, measuring, rounds, address),
        "load_average_1_min_after": round(os.getloadavg()[0], 2),
    }
    ray.shutdown()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["faults", "throughput"])
    options = parser.parse_args()
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"),
        "RAY_worker_niceness": "0",  # by default, Ray gives workers a lower priority than other programs
    }  # fmt: skip
    sys.path.insert(0, str(ROOT / "src"))
    import ray
    from ray.cluster_utils import Cluster

    size = {"object_store_memory": 100 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **size})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    made: dict[str, Any] = {"command": "python benchmarks/ray_cluster.py", "ray": ray.__version__}
    try:
        with tempfile.TemporaryDirectory(prefix="phase-ray-") as name:
            folder = Path(name)
            make_videos(folder, options.videos)
            if options.only != "throughput":
                made["faults"] = run_faults(folder, cluster.address, options.videos)
            if options.only != "faults":
                made["throughput"] = run_throughput(folder, cluster.address, options.rounds)
    finally:
        cluster.shutdown()
    text = json.dumps(made, indent=1) + "\n"
    print(text)
    if options.out:
        known = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
        options.out.write_text(json.dumps(known | made, indent=1) + "\n", encoding="utf-8")
    if not made.get("faults", {"passed": True})["passed"]:
        raise SystemExit("a video was lost or doubled")


if __name__ == "__main__":
    main()
