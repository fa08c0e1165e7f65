"""Load `phase serve` on the loopback interface with a bounded number of requests.

    python benchmarks/serve_load.py --out benchmarks/results/serve_load.json

One worker measures, and the queue holds four requests. Steady clients send one request after the other; then
a burst sends more requests at once than the queue holds. Recorded are answers by status, latency and memory.
Times depend on other programs on the machine, so the load is recorded beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
PORT = 8437
URL = f"http://127.0.0.1:{PORT}"


def memory_mb(root: int) -> float:
    """Return the resident memory of a process and its descendants, shared pages counted once (PSS)."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        waiting += parents.get(process, [])
        try:
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return round(total / 1024, 1)


def send(video: bytes, times_s: list[float], statuses: Counter[int], lock: threading.Lock) -> None:
    start_s = time.monotonic()
    headers = {"Content-Type": "video/mp4"}
    answer = httpx.post(f"{URL}/v1/measure", content=video, headers=headers, timeout=300)
    with lock:
        statuses[answer.status_code] += 1
        if answer.status_code == 200:
            times_s.append(time.monotonic() - start_s)


def run_clients(video: bytes, clients: int, each: int, server: int) -> dict[str, Any]:
    times_s: list[float] = []
    statuses: Counter[int] = Counter()
    lock, peak = threading.Lock(), 0.0

    def client() -> None:
        for _ in range(each):
            send(video, times_s, statuses, lock)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    start_s = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, memory_mb(server))
        time.sleep(0.2)
    times_s.sort()
    return {
        "clients": clients,
        "requests": clients * each,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "seconds": round(time.monotonic() - start_s, 2),
        "latency_median_s": round(times_s[len(times_s) // 2], 2) if times_s else None,
        "latency_worst_s": round(times_s[-1], 2) if times_s else None,
        "peak_memory_mb": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    from cli.filmset import FilmSet

    with tempfile.TemporaryDirectory() as name:
        video = FilmSet(Path(name)).face().read_bytes()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    words = ["serve", "--port", str(PORT), "--workers", "1", "--queue", "4"]
    server = subprocess.Popen([sys.executable, "-m", "phase_rppg", *words], env=environment)
    try:
        for _ in range(150):
            try:
                httpx.get(f"{URL}/healthz")
                break
            except httpx.ConnectError:
                time.sleep(0.2)
        idle_mb = memory_mb(server.pid)
        first = run_clients(video, 1, 1, server.pid)  # starts the worker process
        made = {
            "command": "python benchmarks/serve_load.py",
            "video_s": 11,
            "video_mb": round(len(video) / 1e6, 3),
            "idle_memory_mb": idle_mb,
            "first_request_s": first["latency_median_s"],
            "one_client": run_clients(video, 1, 4, server.pid),
            "four_clients": run_clients(video, 4, 2, server.pid),
            "burst_of_16": run_clients(video, 16, 1, server.pid),
            "after_the_burst": httpx.get(f"{URL}/healthz").json()["status"],
            "memory_after_mb": memory_mb(server.pid),
            "load_average_1_min": round(os.getloadavg()[0], 2),
            "cpus": os.cpu_count(),
        }
    finally:
        server.terminate()
        server.wait()
    text = json.dumps(made, indent=1) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
