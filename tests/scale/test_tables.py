"""Parquet tables: what they hold, how other programs read them, and that each video is in them once."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.cli import run
from phase_rppg.errors import InputError
from phase_rppg.fileio import atomic_path
from phase_rppg.report import tables

Films = Callable[[str], Path]
DOCS = Path(__file__).parents[2] / "docs" / "tables.md"
POS = ["-m", "pos", "--workers", "0", "--quiet"]


@pytest.fixture
def duckdb() -> Any:
    pytest.importorskip("pyarrow", reason="pyarrow is missing: the extra parquet")
    return pytest.importorskip("duckdb", reason="duckdb is missing: requirements/scale.txt")


def rows(duckdb: Any, root: Path, table: str, select: str = "*") -> list[tuple[Any, ...]]:
    files = f"{root}/{table}/*/*.parquet"
    query = f"select {select} from read_parquet('{files}', hive_partitioning=true) order by all"
    return list(duckdb.sql(query).fetchall())


def test_the_page_lists_every_column() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for table, columns in tables.TABLES.items():
        section = text.partition(f"## `{table}`\n")[2].partition("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \| `([\w<>]+)` \| (.+) \|$", section, re.MULTILINE)
        assert listed == [(each.name, each.type, each.about) for each in columns]


def test_duckdb_reads_what_json_says(
    videos: Path, tmp_path: Path, duckdb: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["measure", str(videos), "--parquet", str(out), "--full", "--json", *POS]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert (summary["videos"], summary["with_reading"]) == (3, 1)
    assert summary["without_reading"] == {"NO_FACE": 1}
    assert list(summary["failed"].values()) == [1]
    assert run(["measure", str(videos), "--json", "--full", *POS]) == 0
    documents = {found["video"]: found for found in json.loads(capfd.readouterr().out)}
    stored = rows(duckdb, out, "videos", "video, duration_s, faces, readings, reason, error is null, method")
    assert len(stored) == len(documents) == 3
    for video, duration_s, faces, readings, reason, is_read, method in stored:
        found = documents[video]
        assert is_read == ("error" not in found)
        assert duration_s == found.get("duration_s")
        assert faces == len(found.get("faces", ()))
        assert reason == found.get("reason")
        assert readings == sum(face["summary"]["bpm"] is not None for face in found.get("faces", ()))
        assert method == "pos"
    [(name, found)] = [(name, each) for name, each in documents.items() if each.get("faces")]
    [face] = found["faces"]
    assert rows(duckdb, out, "faces", "video, bpm, low, high, p_ok, range_low, rmssd_ms") == [
        (name, *(face["summary"][key] for key in ("bpm", "low", "high", "p_ok", "range_low")),
         (face["hrv"] or {}).get("rmssd_ms"))
    ]  # fmt: skip
    columns = ("start_s", "end_s", "bpm", "low", "high", "p_ok", "snr_db", "reason")
    windows = sorted(tuple(window[key] for key in columns) for window in face["windows"])
    assert rows(duckdb, out, "windows", ", ".join(columns)) == windows
    assert rows(duckdb, out, "beats", "time_s") == sorted((beat["time_s"],) for beat in face["beats"])
    [(fps, values)] = rows(duckdb, out, "waves", "fps, values")
    assert fps == face["wave"]["fps"]
    assert values == pytest.approx(face["wave"]["values"], abs=1e-6)


def test_other_programs_read_the_tables(videos: Path, tmp_path: Path, duckdb: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is missing")
    assert run(["measure", str(videos), "--parquet", str(tmp_path / "out"), *POS]) == 0
    frame = pandas.read_parquet(tmp_path / "out" / "videos")
    assert set(frame["method"].astype(str)) == {"pos"}
    assert [each.name for each in tables.TABLES["videos"]] == list(frame.columns)[:-1]
    polars = pytest.importorskip("polars", reason="polars is missing")
    assert polars.read_parquet(f"{tmp_path}/out/videos/**/*.parquet").height == len(frame)


def test_a_repeated_run_measures_only_what_is_new(
    videos: Path, film: Films, tmp_path: Path, duckdb: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["measure", str(videos), "--parquet", str(tmp_path / "out"), "--json", *POS]

    def counts(*more: str) -> tuple[int, int]:
        assert run([*words, *more]) == 0
        found = json.loads(capfd.readouterr().out)
        return found["measured"], found["measured_before"]

    assert counts() == (3, 0)
    assert run(words) == 4  # not without --resume
    assert "holds results; continue with --resume" in capfd.readouterr().err
    assert counts("--resume") == (0, 3)
    shutil.copy(film("other"), videos / "new.mp4")
    (videos / "b" / "nobody.mp4").write_bytes(film("short").read_bytes())
    assert counts("--resume") == (2, 3 - 1)
    names = rows(duckdb, tmp_path / "out", "videos", "regexp_extract(video, '[^/]+$')")
    assert names == [("bad.avi",), ("face.mp4",), ("new.mp4",), ("nobody.mp4",), ("nobody.mp4",)]
    assert counts("--resume", "--window", "9") == (4, 0)  # other options give other results
    assert counts("--force") == (4, 0)
    assert len(rows(duckdb, tmp_path / "out", "videos")) == 4


@pytest.mark.parametrize("fails_at", ["windows", "videos"])
def test_a_writer_that_is_stopped_leaves_each_video_once(
    fails_at: str, videos: Path, film: Films, tmp_path: Path, duckdb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(film("face"), videos / "twin.mp4")
    words = ["measure", str(videos), "--parquet", str(tmp_path / "out"), "--resume", *POS]
    write = tables.LocalFiles.write

    def stop(self: tables.LocalFiles, name: str, data: bytes) -> None:
        if name.startswith(fails_at) and len(self.names("faces/*/*.parquet")) == 2:
            raise KeyboardInterrupt
        write(self, name, data)

    with monkeypatch.context() as patched:
        patched.setattr(tables.LocalFiles, "write", stop)
        patched.setattr(tables, "PART_VIDEOS", 1)
        assert run(words) == 130
    before = rows(duckdb, tmp_path / "out", "videos", "video")
    assert len(before) < 4
    assert len(list((tmp_path / "out" / "faces").rglob("*.parquet"))) == 2  # one of them is incomplete
    assert run(words) == 0
    for table in ("videos", "faces"):
        found = rows(duckdb, tmp_path / "out", table, "video, key")
        assert len(found) == len(set(found))
    assert len(rows(duckdb, tmp_path / "out", "videos")) == 4
    windows = rows(duckdb, tmp_path / "out", "windows", "video, start_s")
    assert len(windows) == len(set(windows)) == 4  # two videos of 11 s


def test_parts_are_written_while_videos_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is missing: the extra parquet")
    store = tables.TableStore(str(tmp_path), "pos")
    monkeypatch.setattr(tables, "PART_VIDEOS", 3)

    def parts() -> int:
        return len(list(tmp_path.rglob("*.parquet")))

    row = {"video": "a", "key": "k", "fingerprint": "", "settings": "s", "readings": 1}
    for count in range(5):
        store.add({"videos": [row | {"video": str(count)}]})
    assert parts() == 1
    monkeypatch.setattr(tables, "PART_S", 0.0)
    store.add({"videos": [row]})
    assert parts() == 2
    store.flush()
    assert parts() == 2
    assert sorted(store.known()) == ["0", "1", "2", "3", "4", "a"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--csv", "x.csv"], "--parquet cannot be combined with other output files"),
        (["-o", "x"], "--parquet cannot be combined with other output files"),
        (["--ndjson"], "--parquet prints a summary"),
    ],
)
def test_other_outputs_are_refused(
    words: list[str], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", "x.mp4", "--parquet", str(tmp_path / "out"), *words]) == 2
    assert told in capfd.readouterr().err


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("phase_rppg.errors.is_installed", lambda package: False)
    assert run(["measure", "x.mp4", "--parquet", str(tmp_path)]) == 2
    assert 'pip install "phase-rppg[parquet]"' in capfd.readouterr().err


# Object stores ---------------------------------------------------------------------------------------------


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3-compatible server on the loopback interface, with one bucket."""
    moto = pytest.importorskip("moto.server", reason="moto is missing: requirements/scale.txt")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is missing: requirements/scale.txt")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    yield system
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.filterwarnings("default")
def test_videos_and_tables_in_an_object_store(
    bucket: Any, videos: Path, film: Films, duckdb: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    bucket.put(str(videos), "bucket/videos", recursive=True)
    words = [
        "measure",
        "s3://bucket/videos",
        "--parquet",
        "s3://bucket/out",
        "--allow-network",
        "--json",
        *POS,
    ]

    def counts() -> tuple[int, int]:
        assert run([*words, "--resume"]) == 0
        found = json.loads(capfd.readouterr().out)
        return found["measured"], found["measured_before"]

    assert counts() == (3, 0)
    with monkeypatch.context() as patched:  # the tag of the store is enough: nothing is fetched again
        patched.setattr("phase_rppg.measurement.object_store._copy", lambda *_: pytest.fail("fetched"))
        assert counts() == (0, 3)
    bucket.put(str(film("other")), "bucket/videos/new.mp4")
    assert counts() == (1, 3)
    bucket.get("bucket/out", str(tmp_path / "copy"), recursive=True)
    names = [name for (name,) in rows(duckdb, tmp_path / "copy", "videos", "video")]
    assert names == [
        f"s3://bucket/videos/{name}" for name in ("a/face.mp4", "b/bad.avi", "b/nobody.mp4", "new.mp4")
    ]
    assert run(["measure", "s3://bucket/none", "--allow-network", *POS]) == 4
    assert "contains no videos" in capfd.readouterr().err


# Figures ---------------------------------------------------------------------------------------------------


def test_the_page_shows_the_recorded_cost() -> None:
    """`python benchmarks/scale_cost.py --write` after a new measurement."""
    import importlib.util

    root = DOCS.parents[1]
    spec = importlib.util.spec_from_file_location("scale_cost", root / "benchmarks" / "scale_cost.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    record = json.loads(module.RECORD.read_text(encoding="utf-8"))
    shown = module.PAGE.read_text(encoding="utf-8").partition(module.BEGIN)[2].partition(module.END)[0]
    assert shown == module.tables(record)
    need = module.compute(record, "pos")
    hour = record["methods"]["pos"]["cpu_s_per_hour"] + record["methods"]["pos"]["cpu_s_per_video"]
    assert need["vcpu_hours"] == pytest.approx(1e6 * hour / 3600)
    assert need["usd"] == pytest.approx(need["vcpu_hours"] * 0.04)


def write_part(root: Path, count: int = 1, **changes: Any) -> Path:
    """Write a part of the videos with `count` equal rows."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: the extra parquet")
    import pyarrow.parquet as pq

    row = {
        "video": "a",
        "key": "k",
        "fingerprint": "",
        "settings": "s",
        "readings": 1,
        "error": None,
    } | changes
    part = root / "videos" / "method=pos" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    types = {"readings": pa.int32(), "error": pa.string()}
    columns = {name: pa.array([value], types.get(name)) for name, value in row.items()}
    once = pa.array([0] * count, pa.int32())
    pq.write_table(pa.table({name: values.take(once) for name, values in columns.items()}), part)
    return part


def test_the_stored_rows_are_known(tmp_path: Path) -> None:
    write_part(tmp_path)
    assert tables.TableStore(str(tmp_path), "pos").known() == {"a": (tables.Known("k", "", "s", 1, None),)}


@pytest.mark.parametrize(
    "changes",
    [{"count": 10_001}, {"video": None}, {"video": ["a"]}, {"key": 5}, {"readings": None}],
    ids=["rows", "no name", "a list", "a number", "no count"],
)
def test_a_part_that_cannot_be_used_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    write_part(tmp_path, **changes)
    with pytest.raises(InputError, match=r"cannot be read .* remove this file"):
        tables.TableStore(str(tmp_path), "pos").known()


def test_special_files_and_links_out_of_the_tables_are_not_read_or_removed(tmp_path: Path) -> None:
    root, part = tmp_path / "out", write_part(tmp_path / "out")
    part.unlink()
    os.mkfifo(part)
    store = tables.TableStore(str(root), "pos")
    with pytest.raises(InputError, match="a pipe or a socket"):
        store.known()
    part.unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept.parquet").touch()
    (root / "videos" / "method=link").symlink_to(tmp_path / "elsewhere")
    store.clear()
    assert (tmp_path / "elsewhere" / "kept.parquet").exists()


def test_an_unfinished_write_is_not_a_part(tmp_path: Path) -> None:
    """A writer that is killed before the rename leaves a hidden file, which a later write removes."""
    files = tables.LocalFiles(tmp_path)
    with atomic_path(tmp_path / "videos" / "method=pos" / "part-1.parquet") as unfinished:
        unfinished.write_bytes(b"rows")
        assert unfinished.suffix == ".parquet"  # else the pattern would exclude it
        assert files.names("videos/*/*.parquet") == []
    assert files.names("videos/*/*.parquet") == ["videos/method=pos/part-1.parquet"]
