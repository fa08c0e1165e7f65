"""Videos in object stores: listing, fetching, lists of sources, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.cli import run
from phase_rppg.errors import UsageError, VideoError
from phase_rppg.measurement import object_store
from phase_rppg.measurement.batch import VideoInput

fsspec = pytest.importorskip("fsspec", reason="fsspec is missing: the extra objects")
Films = Callable[[str], Path]
POS = ["-m", "pos", "--workers", "0"]


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of this process, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def test_videos_below_an_address_are_found(memory: Any) -> None:
    for name in ("/films/s1/vid.mp4", "/films/s2/vid.AVI", "/films/s2/notes.txt", "/other/x.mp4"):
        memory.pipe_file(name, b"x")
    found, failures = object_store.find_objects("memory://films")
    assert [video.name for video in found] == ["memory://films/s1/vid.mp4", "memory://films/s2/vid.AVI"]
    assert [video.label for video in found] == ["s1/vid.mp4", "s2/vid.AVI"]
    assert all(video.address == video.name for video in found)
    assert not failures
    matched, _ = object_store.find_objects("memory://films/*/vid.mp4")
    assert [video.name for video in matched] == ["memory://films/s1/vid.mp4"]
    notes, _ = object_store.find_objects("memory://films", "s2/*.txt")
    assert [video.label for video in notes] == ["s2/notes.txt"]
    single, _ = object_store.find_objects("memory://other/x.mp4")
    assert [video.name for video in single] == ["memory://other/x.mp4"]
    none, failures = object_store.find_objects("memory://empty")
    assert not none
    assert "contains no videos" in failures[0].problem


def test_an_object_is_copied_and_the_copy_is_removed(memory: Any) -> None:
    content = bytes(range(256)) * 50_000
    memory.pipe_file("/a/b.mp4", content)
    video = VideoInput("memory://a/b.mp4", Path("b.mp4"), "b.mp4", "memory://a/b.mp4")
    with object_store.fetched(video) as local:
        assert local.path.read_bytes() == content
        assert local.path.suffix == ".mp4"
        assert local.name == video.name
    assert not local.path.exists()
    gone = VideoInput("memory://a/c.mp4", Path("c.mp4"), "c.mp4", "memory://a/c.mp4")
    with pytest.raises(VideoError, match=r"memory://a/c\.mp4: does not exist"), object_store.fetched(gone):
        pass


def test_the_fingerprint_changes_with_the_content(memory: Any) -> None:
    video = VideoInput("memory://a/b.mp4", Path("b.mp4"), "b.mp4", "memory://a/b.mp4")
    memory.pipe_file("/a/b.mp4", b"one")
    first = object_store.fingerprint(video)
    assert first == object_store.fingerprint(video) != ""
    memory.pipe_file("/a/b.mp4", b"other")
    assert object_store.fingerprint(video) != first
    assert object_store.fingerprint(VideoInput("b.mp4", Path("b.mp4"), "b.mp4")) == ""


@pytest.mark.parametrize(
    ("address", "path"),
    [("file:///data/a%20b.mp4", "/data/a b.mp4"), ("file://localhost/x", "/x"), ("s3://bucket/x", None)],
)
def test_a_file_address_is_a_path(address: str, path: str | None) -> None:
    assert object_store.local_path(address) == path


def test_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="names another machine"):
        object_store.local_path("file://server/x.mp4")


def test_objects_and_files_give_the_same_result(
    film: Films, memory: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    memory.pipe_file("/films/face.mp4", film("face").read_bytes())
    listed = tmp_path / "list.txt"
    listed.write_text(f"# sources\n\n{film('face').as_uri()}\nmemory://films\n", encoding="utf-8")
    assert run(["measure", f"@{listed}", "--json", *POS]) == 0
    first, second = json.loads(capfd.readouterr().out)
    assert first.pop("video") == str(film("face"))
    assert second.pop("video") == "memory://films/face.mp4"
    assert first == second


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["s3://bucket/x.mp4"], 2, "is in an object store; download the file first, or add --allow-network"),
        (["rtsp://camera/1"], 2, "rtsp addresses are not supported"),
        (["nosuch://x", "--allow-network"], 2, "nosuch"),
        (["memory://nowhere"], 4, "contains no videos"),
        (["@nowhere.txt"], 4, "nowhere.txt: does not exist"),
        (["memory://a", "--address", "auto"], 2, "--address needs a cluster: --engine ray"),
        (["memory://a", "--engine", "spark"], 2, "unknown engine 'spark'"),
    ],
)
def test_wrong_sources_give_one_line(
    words: list[str], code: int, told: str, memory: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", *words, *POS]) == code
    err = capfd.readouterr().err
    assert told in err
    assert err.count("\n") == 1
