"""Measure speed and memory, and write docs/performance.md.

    python -m benchmarks list
    python -m benchmarks run [NAME …] [--rounds N] [--resume] [--peers] [--clips DIR]
    python -m benchmarks compare OLD.json [NEW.json]
    python -m benchmarks page [--check]
    python -m benchmarks study NAME [ARGUMENT …]      # one of the other files of this folder

`run` measures all benchmarks, or those that are named, and stores each as soon as it is finished in
benchmarks/results/performance.json. It names the figures that differ from the last stored run. `--resume`
skips benchmarks that were already measured at this commit. `--peers` also measures other packages, each in an
environment that is removed afterwards.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from phase_rppg.fileio import read_json

from . import page, peers, store
from .cases import BENCHMARKS
from .processes import ROOT, commit
from .store import Benchmark

_OURS = {"__init__", "__main__", "cases", "clips", "page", "peers", "processes", "store"}


def studies() -> dict[str, str]:
    """Return the other benchmarks of this folder and the first line of their descriptions."""
    found = {}
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        if path.stem not in _OURS:
            found[path.stem] = path.read_text(encoding="utf-8").partition('"""')[2].splitlines()[0]
    return found


def show_list() -> int:
    for benchmark in BENCHMARKS:
        print(f"{benchmark.name:18} {benchmark.text}")
    print("\nStudies of accuracy and reliability (`python -m benchmarks study NAME`):")
    for name, text in studies().items():
        print(f"{name:18} {text}")
    return 0


def run_all(names: list[str], rounds: int | None, resume: bool, folder: Path) -> int:
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if unknown := [name for name in names if name not in known]:
        print(
            f"no such benchmark: {', '.join(unknown)}; `python -m benchmarks list` shows them",
            file=sys.stderr,
        )
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    before, here = store.load(), commit()
    for benchmark in [known[name] for name in names] or BENCHMARKS:
        done = store.load()["benchmarks"].get(benchmark.name)
        if resume and done is not None and done["commit"] == here:
            print(f"{benchmark.name}: measured at {here} already")
            continue
        if missing := [name for name in benchmark.needs if find_spec(name) is None]:
            print(f"{benchmark.name}: skipped, it needs {', '.join(missing)}")
            continue
        run_one(benchmark, rounds or benchmark.rounds, folder)
    for line in store.differences(before, store.load()):
        print(f"changed since the last stored run: {line}")
    page.write()
    return 0


def run_one(benchmark: Benchmark, rounds: int, folder: Path) -> None:
    print(f"{benchmark.name}: {benchmark.text}", flush=True)
    entry = store.record(benchmark, [benchmark.measure(folder) for _ in range(rounds)])
    for name, values in entry["quantities"].items():
        print(
            f"  {name:32} {values['median']:10g}  ({values['smallest']:g} … {values['largest']:g})",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show all benchmarks")
    runner = commands.add_parser("run", help="measure and store")
    runner.add_argument("names", nargs="*", metavar="NAME")
    runner.add_argument("--rounds", type=int, help="instead of the number of each benchmark")
    runner.add_argument("--resume", action="store_true", help="skip what was measured at this commit")
    runner.add_argument("--peers", action="store_true", help="also measure other packages")
    runner.add_argument(
        "--clips",
        type=Path,
        default=Path(tempfile.gettempdir()) / "phase-benchmarks",
        help="folder of the clips",
    )
    compare = commands.add_parser("compare", help="name the figures that differ between two files")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path, nargs="?", default=store.RESULTS)
    pages = commands.add_parser("page", help="write docs/performance.md from the stored results")
    pages.add_argument("--check", action="store_true", help="only compare it")
    study = commands.add_parser("study", help="run another file of this folder")
    study.add_argument("name", choices=sorted(studies()))
    study.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.command == "list":
        return show_list()
    if given.command == "run":
        code = run_all(given.names, given.rounds, given.resume, given.clips)
        if given.peers and not code:
            peers.run_all(given.clips)
            page.write()
        return code
    if given.command == "compare":
        lines = store.differences(read_json(given.old), read_json(given.new))
        print("\n".join(lines) or "no figure differs by more than 10 % and its spread")
        return int(bool(lines))
    if given.command == "page":
        return page.check() if given.check else page.write()
    sys.path.insert(0, str(ROOT / "benchmarks"))  # some studies import another one
    sys.argv = [str(ROOT / "benchmarks" / f"{given.name}.py"), *given.arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
