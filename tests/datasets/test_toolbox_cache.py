"""Clips of the rPPG-Toolbox are read and written; files that do not fit are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phase_rppg import cli, limits
from phase_rppg.datasets import cache, toolbox_cache
from phase_rppg.errors import InputError

from . import fake_layouts

FRAMES = 40


def write_clips(folder: Path, names: tuple[str, ...] = ("101", "1002"), clips: int = 11) -> None:
    """Clips as the toolbox saves them: 64-bit frames in 0–255, 64-bit labels."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        rng = np.random.default_rng(int(name))
        wave = fake_layouts.FaceState(1, 72).pulse(np.arange(clips * FRAMES) / 30)
        for index in range(clips):
            pixels = rng.integers(0, 256, (FRAMES, 12, 12, 3)).astype(float)
            np.save(folder / f"{name}_input{index}.npy", pixels)
            np.save(folder / f"{name}_label{index}.npy", wave[index * FRAMES : (index + 1) * FRAMES])


def test_clips_are_joined_in_the_order_of_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_clips(tmp_path / "PURE")  # input10 comes after input9
    out = str(tmp_path / "out")
    assert cli.run(["toolbox-cache", "pure", str(tmp_path / "PURE"), "-o", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recordings"] == 2
    first, second = cache.open_cache(tmp_path / "out", "pure", verify=True)
    assert (first.subject, second.subject) == ("01", "10")  # as our reader of PURE names them
    assert first.frames == 11 * FRAMES
    wave = fake_layouts.FaceState(1, 72).pulse(np.arange(11 * FRAMES) / 30)
    assert np.corrcoef(first.wave, wave)[0, 1] > 0.9999
    last = np.load(tmp_path / "PURE" / "101_input10.npy")
    assert (first.pixels[-FRAMES:] == last).all()


def test_a_file_list_selects_clips_and_its_folders_are_not_followed(tmp_path: Path) -> None:
    write_clips(tmp_path / "clips", clips=2)
    listed = tmp_path / "list.csv"
    listed.write_text(",input_files\n0,/home/someone/elsewhere/101_input1.npy\n1,C:\\data\\101_input0.npy\n")
    (found,) = toolbox_cache.find_recordings(tmp_path / "clips", listed)
    assert [path.name for path in found.inputs] == ["101_input0.npy", "101_input1.npy"]
    assert {path.parent for path in found.inputs} == {tmp_path / "clips"}
    listed.write_text("files\nx\n")
    with pytest.raises(InputError, match="no column input_files"):
        toolbox_cache.find_recordings(tmp_path / "clips", listed)


@pytest.mark.parametrize(("folder", "target"), [("UBFC_LabelTypeDiffNormalized_x", ""), ("x", "difference")])
def test_differences_are_integrated(folder: str, target: str, tmp_path: Path) -> None:
    write_clips(tmp_path / folder, ("101",), clips=3)
    wave = fake_layouts.FaceState(1, 72).pulse(np.arange(3 * FRAMES) / 30)
    slope = toolbox_cache.normalise(wave, "DiffNormalized")
    for index in range(3):
        part = slope[index * FRAMES : (index + 1) * FRAMES]
        np.save(tmp_path / folder / f"101_label{index}.npy", part)
    (found,) = toolbox_cache.find_recordings(tmp_path / folder)
    options = toolbox_cache.ImportOptions("ubfc_rppg", target=target)
    entry = cache.open_entry(toolbox_cache.import_recording(found, tmp_path / "out", options))
    assert np.corrcoef(entry.wave, wave)[0, 1] > 0.9999


def test_what_is_written_is_what_the_toolbox_computes_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_clips(tmp_path / "PURE", ("101",), clips=3)
    assert cli.run(["toolbox-cache", "pure", str(tmp_path / "PURE"), "-o", str(tmp_path / "ours")]) == 0
    types = ["--input", "DiffNormalized", "--input", "Standardized", "--label", "DiffNormalized"]
    out = tmp_path / "theirs"
    run = [
        "toolbox-cache",
        "--write",
        "pure",
        str(tmp_path / "ours"),
        "-o",
        str(out),
        "--frames",
        "50",
        *types,
    ]
    assert cli.run(run) == 0
    assert "2 clips of 1 recording in" in " ".join(capsys.readouterr().out.split())
    (entry,) = cache.open_cache(tmp_path / "ours", "pure")
    pixels, wave = entry.pixels.astype(float), entry.wave.astype(float)
    change = (pixels[1:] - pixels[:-1]) / (pixels[1:] + pixels[:-1] + 1e-7)
    change = np.concatenate([change / change.std(), np.zeros_like(pixels[:1])])
    standard = (pixels - pixels.mean()) / pixels.std()
    written = np.load(out / "101_input1.npy")
    assert np.allclose(written, np.concatenate([change, standard], 3)[50:100], atol=1e-4)
    slope = np.append(np.diff(wave) / np.diff(wave).std(), 0)
    assert np.allclose(np.load(out / "101_label1.npy"), slope[50:100], atol=1e-5)
    rows = (tmp_path / "theirs.csv").read_text().splitlines()
    assert rows == [",input_files", *(f"{i},{(out / f'101_input{i}.npy').resolve()}" for i in range(2))]
    # Raw clips survive both ways.
    raw = tmp_path / "raw"
    assert (
        cli.run(
            ["toolbox-cache", "--write", "pure", str(tmp_path / "ours"), "-o", str(raw), "--frames", "40"]
        )
        == 0
    )
    (found,) = toolbox_cache.find_recordings(raw, tmp_path / "raw.csv")
    again = cache.open_entry(
        toolbox_cache.import_recording(found, tmp_path / "b", toolbox_cache.ImportOptions("pure"))
    )
    assert (again.pixels == entry.pixels).all()
    assert np.allclose(again.wave, entry.wave)


class Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("this must not run",)


BAD = {
    "normalised": (lambda p: np.save(p, np.load(p) - 100), "preprocess with DATA_TYPE"),
    "six channels": (lambda p: np.save(p, np.zeros((FRAMES, 8, 8, 6))), r"accepted: \(T,S,S,3\)"),
    "not square": (lambda p: np.save(p, np.zeros((FRAMES, 8, 9, 3))), r"accepted: \(T,S,S,3\)"),
    "another length": (lambda p: np.save(p, np.zeros((7, 12, 12, 3))), "40 values for 7 frames"),
    "objects": (lambda p: np.save(p, np.array([Code()], object), allow_pickle=True), "pickled objects"),
    "text": (lambda p: p.write_text("no array"), "not a NumPy file"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:5000]), "its header says"),
    "nan": (lambda p: np.save(p, np.full((FRAMES, 12, 12, 3), np.nan)), "not pixels"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_do_not_fit_are_named(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_clips(tmp_path / "clips", ("101",), clips=1)
    damage, says = BAD[case]
    damage(tmp_path / "clips" / "101_input0.npy")
    (found,) = toolbox_cache.find_recordings(tmp_path / "clips")
    with pytest.raises(InputError, match=says):
        toolbox_cache.import_recording(found, tmp_path / "out", toolbox_cache.ImportOptions("pure"))
    assert "this must not run" not in capsys.readouterr().out
    assert not list((tmp_path / "out").rglob("entry.json"))


def test_an_array_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_clips(tmp_path / "clips", ("101",), clips=1)
    monkeypatch.setenv(limits.VARIABLE, "mat_values=1000")
    (found,) = toolbox_cache.find_recordings(tmp_path / "clips")
    with pytest.raises(InputError, match="--max mat_values"):
        toolbox_cache.import_recording(found, tmp_path / "out", toolbox_cache.ImportOptions("pure"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["pure", "nowhere"], 4, "no such folder"),
        (["pure", ".", "--target", "slope"], 4, "no clips of the rPPG-Toolbox"),
        (["pure", "."], 4, "no clips of the rPPG-Toolbox"),
        (["pure", ".", "--write"], 4, "no prepared recordings"),
        (["pure", ".", "--write", "--input", "Normalized"], 2, "DiffNormalized"),
    ],
)
def test_wrong_use_ends_in_one_line(
    arguments: list[str],
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["toolbox-cache", *arguments]) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def write_one(folder: Path, pixels: np.ndarray, label: np.ndarray | None) -> None:
    folder.mkdir()
    np.save(folder / "s_input0.npy", pixels)
    if label is not None:
        np.save(folder / "s_label0.npy", label)


@pytest.mark.parametrize(
    ("pixels", "label", "says"),
    [
        (np.zeros((99, 0, 0, 3), np.uint8), np.zeros(99), "has the shape (99, 0, 0, 3)"),
        (np.zeros((99, 4, 4, 3), np.uint8), None, "s_label0.npy: does not exist"),
        (np.zeros((99, 4, 4, 3), np.uint8), np.full(99, 1e308), "too large"),
    ],
)
def test_a_clip_that_cannot_be_used_is_one_line(
    pixels: np.ndarray, label: np.ndarray | None, says: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    write_one(tmp_path / "clips", pixels, label)
    assert cli.run(["toolbox-cache", "pure", str(tmp_path / "clips"), "-o", str(tmp_path / "out")]) == 4
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert says in message
    assert not list((tmp_path / "out").rglob("*.*"))


def test_a_header_with_a_side_that_is_no_number_is_refused(tmp_path: Path) -> None:
    write_one(tmp_path / "clips", np.zeros((1, 1, 1, 3), np.uint8), np.zeros(1))
    file = tmp_path / "clips" / "s_input0.npy"
    file.write_bytes(file.read_bytes().replace(b"(1, 1, 1, 3)", b"(True,1,1,3)"))
    (recording,) = toolbox_cache.find_recordings(tmp_path / "clips")
    with pytest.raises(InputError, match="not a NumPy file, or damaged"):
        next(toolbox_cache.clips_of(recording))


def test_a_long_clip_is_converted_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 4, 4, 3)).astype(np.uint8)
    write_one(tmp_path / "clips", pixels, np.arange(50.0))
    monkeypatch.setattr(toolbox_cache, "_PIECE_VALUES", 16 * pixels[0].size)
    pieces = list(toolbox_cache.clips_of(*toolbox_cache.find_recordings(tmp_path / "clips")))
    assert [len(part) for part, _ in pieces] == [16, 16, 16, 2]
    assert (np.concatenate([part for part, _ in pieces]) == pixels).all()
    assert (np.concatenate([label for _, label in pieces]) == np.arange(50)).all()


@pytest.mark.parametrize("row", ["0," + "a" * 200_000, "0,s_input" + "1" * 5000 + ".npy", "0"])
def test_a_file_list_with_a_strange_row_is_refused(row: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f",input_files\n{row}\n")
    with pytest.raises(InputError):
        toolbox_cache.find_recordings(tmp_path, tmp_path / "list.csv")


@pytest.mark.parametrize("fps", ["0", "nan", "-30", "1e9"])
def test_an_impossible_frame_rate_is_refused(
    fps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_clips(tmp_path / "clips", clips=1)
    assert cli.run(["toolbox-cache", "pure", str(tmp_path / "clips"), "--fps", fps]) == 2
    assert "--fps" in capsys.readouterr().err
