"""Fuzz one target in this process; `python -m fuzz` starts it and reads the JSON line that it writes.

python -m fuzz.run_target NAME SECONDS SEED FINDINGS REPORT
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

MAX_INPUT_BYTES = 16384
MEMORY_MB = 2048
SLOW_S = 5.0
WRITE_EVERY_S = 1.0
INSTRUMENTED = ["phase_rppg", "http.server", "http.client", "email", "tomllib"]


class Recorder:
    """Calls a target, counts, and keeps the first input of every distinct failure."""

    def __init__(self, name: str, findings: Path, report: Path) -> None:
        self.name, self.findings, self.report = name, findings, report
        self.started_s = time.monotonic()
        self.runs, self.slowest_s, self.written_s = 0, 0.0, 0.0
        self.engine = "mutation"
        self.failures: dict[str, str] = {}
        self.target: Any = None

    def __call__(self, data: bytes) -> None:
        started_s = time.monotonic()
        try:
            self.target(data)
        except Exception as error:
            self._keep(data, _place(error))
        elapsed_s = time.monotonic() - started_s
        if elapsed_s > SLOW_S:
            self._keep(data, f"slower than {SLOW_S:g} s")
        self.runs, self.slowest_s = self.runs + 1, max(self.slowest_s, elapsed_s)
        if time.monotonic() - self.written_s > WRITE_EVERY_S:
            self.write()  # libFuzzer ends the process without returning

    def _keep(self, data: bytes, place: str) -> None:
        if place in self.failures:
            return
        self.findings.mkdir(parents=True, exist_ok=True)
        file = self.findings / f"{self.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        file.write_bytes(data)
        self.failures[place] = file.name

    def write(self) -> None:
        """Write the counts so far."""
        self.written_s = time.monotonic()
        values = {
            "engine": self.engine,
            "seconds": round(time.monotonic() - self.started_s, 1),
            "runs": self.runs,
            "slowest_s": round(self.slowest_s, 3),
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "findings": self.failures,
        }
        self.report.write_text(json.dumps(values), encoding="utf-8")


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.name}"


def main(name: str, seconds: float, seed: int, findings: Path, report: Path) -> None:
    recorder = Recorder(name, findings, report)
    if importlib.util.find_spec("atheris") is None:
        from . import mutate, targets

        recorder.target = targets.TARGETS[name]
        recorder.target(b"")  # imports what the target imports on demand
        for data in targets.seeds(name):
            recorder(data)
        for data in mutate.until(time.monotonic() + seconds, mutate.mutations(targets.seeds(name), seed)):
            recorder(data)
        recorder.write()
        return
    _fuzz_by_coverage(recorder, seconds, seed)


def _fuzz_by_coverage(recorder: Recorder, seconds: float, seed: int) -> None:
    """Let libFuzzer choose the inputs; half of the mutations keep the syntax of the format."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
        from . import mutate, targets

        target, inputs = targets.TARGETS[recorder.name], targets.seeds(recorder.name)
        target(inputs[0])  # imports what the target imports on demand
    corpus = recorder.findings / "corpus" / recorder.name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    recorder.target, recorder.engine = target, "atheris"

    def change(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        kind = rng.choice((mutate.change_bytes, mutate.change_word, mutate.change_json))
        return kind(data, rng, inputs)[:max_size]

    options = [
        f"-max_total_time={int(seconds)}", f"-seed={seed}", f"-rss_limit_mb={MEMORY_MB}", "-timeout=60",
        f"-max_len={MAX_INPUT_BYTES}", "-print_final_stats=1", f"-artifact_prefix={recorder.findings}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], recorder, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
