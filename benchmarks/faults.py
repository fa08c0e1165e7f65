"""Run the tests of faults and record every row of the fault table with its result.

    python benchmarks/faults.py --out benchmarks/results/faults.json
    python benchmarks/faults.py test_faces --out benchmarks/results/faults.json   # the other files stay
    python benchmarks/faults.py test_faces -k photo --out …                       # the other rows stay

`rows` are the rows of the tests in tests/faults, in the order of docs/reliability.md. `tests` are the
other tests of that folder, which have no row. Write the page with scripts/reliability afterwards.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from phase_rppg.fileio import read_json, write_json  # noqa: E402


class Recorder:
    """Collect the rows and outcomes of a run of pytest."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}

    def pytest_collection_finish(self, session: Any) -> None:
        for item in session.items:
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            record = {"section": item.path.stem, "test": item.originalname, "outcome": "not run"}
            self.items[item.nodeid] = {**record, **row_values(parameters.get("row"))}

    def pytest_runtest_logreport(self, report: Any) -> None:
        item = self.items[report.nodeid]
        if report.outcome != "passed":
            item["outcome"] = report.outcome
        elif report.when == "call" and item["outcome"] == "not run":
            item["outcome"] = "passed"


def row_values(row: Any) -> dict[str, Any]:
    """Return the row of a test as it is recorded."""
    if row is None:
        return {}
    return {"fault": row.fault, "happens": row.happens, "exit_code": row.exit_code, "kept": row.kept}


def stays(item: dict[str, Any], files: list[str], expression: str, recorder: Recorder) -> bool:
    """Whether an earlier record is kept: that of another file, or of a row that was not selected."""
    if item["section"] not in files:
        return True
    same = [each for each in recorder.items.values() if each["test"] == item["test"]]
    return bool(expression) and all(each.get("fault") != item.get("fault") for each in same)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="names of test files; all without")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="only these rows, as for pytest")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    options = parser.parse_args()
    folder = ROOT / "tests" / "faults"
    files = options.files or sorted(
        path.stem for path in folder.glob("test_*.py") if path.stem != "test_page"
    )
    recorder = Recorder()
    paths = [str(folder / f"{name}.py") for name in files]
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-k", options.k, *paths], plugins=[recorder])
    earlier = read_json(options.out) if options.out is not None and options.out.exists() else {}
    items = [
        item
        for key in ("rows", "tests")
        for item in earlier.get(key, ())
        if stays(item, files, options.k, recorder)
    ]
    items = sorted([*items, *recorder.items.values()], key=lambda item: item["section"])
    rows = [item for item in items if "fault" in item]
    found = {
        "command": "python benchmarks/faults.py",
        "passed": sum(row["outcome"] == "passed" for row in rows),
        "not_passed": sum(row["outcome"] != "passed" for row in rows),
        "rows": rows,
        "tests": [item for item in items if "fault" not in item],
    }
    print({key: found[key] for key in ("passed", "not_passed")})
    if options.out is not None:
        write_json(options.out, found)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
