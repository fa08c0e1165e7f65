"""Every command line that the documentation shows is run by a test, or stands in NOT_RUN with the reason."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import test_command_lines, test_docs
from datasets import fake_layouts
from phase_rppg.cli import run

ROOT = Path(__file__).parents[2]
RECORDED = ("first-steps.md", "read-a-result.md")  # test_first_steps.py and test_reason_pictures.py

# Run here in one folder each, in this order; the folder has face.mp4, videos/ and a data set in ROOT.
VIDEO = (
    "phase measure face.mp4",
    "phase measure face.mp4 -o results",
    "phase measure videos/ --report all.html",
    "phase explain face.mp4 -o masks.png",
    "phase explain face.mp4 -o face.png",
    "phase explain face.mp4 -o face.png --at 3 --at 8 --force",  # the file of the line above
)
PAGE = "phase live --export site/"
NO_INPUT = (
    "phase physics --alpha 6 --omega 8 --fps 30 --eps 0.01",
    "phase models",
    "phase explain --kernel -o kernel.png",
    "phase reproduce --list",
    "phase reproduce --plan",
)
DATA_SET = (
    "phase audit ubfc_rppg ROOT",
    "phase prepare ubfc_rppg ROOT -o prepared",
    "phase evaluate ubfc_rppg ROOT --model pos",
    "phase evaluate ubfc_rppg ROOT --model phasenet-stream",
    "phase evaluate ubfc_rppg ROOT --model chrom --convention toolbox --out results/chrom",
    "phase evaluate ubfc_rppg ROOT --model pos --convention toolbox --out results/pos",  # for the next lines
    "phase evaluate ubfc_rppg ROOT --model green --convention toolbox --out results/phasenet",
    "phase compare results/pos results/chrom",
    "phase compare results/chrom results/pos results/phasenet --out results",
)
RUN = {
    PAGE,
    *VIDEO,
    *NO_INPUT,
    *DATA_SET,
    *test_docs.COMMANDS,
    "phase explain face.mp4 -o face.png --at 3 --at 8",
}

NOT_RUN = {
    "needs a camera or a person at the browser; tests/web and test_measure_camera.py run both": (
        "phase live", "phase live --no-open --port 9000", "phase live --lan", "phase measure --camera 0",
    ),
    "serves until it is stopped; tests/scale/test_serve.py runs the service": ("phase serve --port 8421",),
    "trains or generates for hours; tests/train and tests/reproduce run the commands in small": (
        "phase synth -o clips/wild --world wild --n 1000",
        "phase synth --out fake/mmpd --as mmpd --n 3 --seconds 6 --size 96",
        "phase train stream", "phase train stream --out run-1",
        "phase train stream --out run-2 --cache run-1 --set optimise.lr=1e-3",
        "phase train smoke --out runs/smoke", "phase train mine.toml --out runs/mine",
        "phase export runs/smoke/best.safetensors -o smoke.onnx", "phase measure face.mp4 --model smoke.onnx",
        "phase train paper --set network.name=rhythmformer --training published --out run",
        "phase train paper --set network.name=physnet --set loss.main=sinc --set loss.auxiliary=none"
        " --out run",
        "phase train paper --out run --device cuda --precision bf16 --channels-last --compile",
        "phase reproduce table2 --data ROOTS --out DIR",
        "phase reproduce table2 --data fake --out /tmp/try --budget smoke",
        "phase reproduce table1 --data ~/data --out results --seed 0 --seed 1 --seed 2",
        "phase reproduce table1 --data ~/data --out results --training both",
        "phase reproduce table2 --plan --data ~/data --seed 0 --seed 1 --tflops 20",
    ),
    "needs a network of the reader; tests/nn/test_import_weights.py and tests/cli/test_explain.py run it": (
        "phase explain face.mp4 -o face.png --model run/best.onnx --json",
        "phase explain --kernel --model run/best.safetensors -o kernel.png --json",
        "phase evaluate ubfc_rppg ROOT --model run/best.safetensors --convention release --split intra",
        "phase evaluate pure ~/PURE --model results/cache/runs/KEY/last.safetensors --split intra",
        "phase evaluate ubfc_rppg ~/UBFC --model physnet.safetensors",
        "phase import-weights PURE_PhysNet_DiffNormalized.pth -o physnet-pure.safetensors",
        "phase import-weights PURE_PhysNet_DiffNormalized.pth -o physnet.safetensors",
    ),
    "needs data of the reader; tests/datasets runs the command on small copies": (
        "phase audit ubfc_rppg ~/data/UBFC --out ubfc-audit.html",
        "phase prepare ubfc_rppg ~/data/UBFC --out ~/data/clips",
        "phase evaluate ubfc_rppg ~/data/UBFC --model pos",
        "phase toolbox-cache pure PreprocessedData/PURE_Raw -o prepared --file-list PURE_0.0_0.8.csv",
        "phase toolbox-cache pure prepared --write -o cached --input DiffNormalized --frames 128",
        "phase evaluate ubfc_rppg ROOT --model M --out DIR",
        "phase evaluate --video … --reference 01-01.json --out DIR",
        "phase --max label_mb=500 --max samples=50000000 prepare folder ~/data --out cache",
    ),
    "needs a cluster, an object store or pyarrow; tests/scale runs it": (
        "phase measure @videos.txt --parquet /shared/results --engine ray --address auto --resume",
        "phase measure s3://a/videos --parquet s3://a/tables --allow-network --engine ray --address auto",
        "phase measure s3://bucket/videos --parquet s3://bucket/results --allow-network",
        "phase measure videos --parquet results", "phase measure @list.txt --parquet results --resume",
    ),
    "needs two faces, or writes into the checkout": (
        "phase explain face.mp4 -o masks.mp4 --face 2",
        "phase explain face.mp4 -o docs/images/explain.png --at 3 --at 8",
        "phase explain --kernel -o docs/images/kernel.png",
        "phase demo --out face.mp4",
    ),
}  # fmt: skip


def plain(line: str) -> str:
    """Return a command line without its comment and without spaces for alignment."""
    return " ".join(line.partition(" # ")[0].split())


SHOWN = {plain(line) for page, line in test_command_lines.LINES if page not in RECORDED}


def test_every_shown_command_is_run_or_has_a_reason() -> None:
    excused = {line for lines in NOT_RUN.values() for line in lines}
    assert SHOWN - RUN - excused == set()
    assert excused - SHOWN == set()  # a line that is gone from the documentation
    assert excused & RUN == set()


@pytest.fixture
def place(film: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a video and a folder of videos, in which the commands run."""
    pytest.importorskip("matplotlib")
    (tmp_path / "videos").mkdir()
    for name in ("face.mp4", "videos/a.mp4"):
        (tmp_path / name).symlink_to(film("face"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_lines(lines: tuple[str, ...]) -> None:
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0, line


@pytest.mark.slow
def test_commands_on_a_video(place: Path) -> None:
    run_lines(VIDEO)
    names = ("results/result.json", "all.html", "masks.png", "face.png")
    assert all((place / name).stat().st_size > 100 for name in names)


def test_the_export_of_the_page(place: Path) -> None:
    if not (ROOT / "src/phase_rppg/web/page/index.html").is_file():
        pytest.skip("the page is not built")
    run_lines((PAGE,))
    assert (place / "site/index.html").is_file()


@pytest.mark.parametrize("line", NO_INPUT)
def test_commands_without_input(line: str, place: Path) -> None:
    run_lines((line,))


@pytest.mark.slow
def test_commands_on_a_data_set(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fake_layouts.ubfc_rppg(place / "ROOT", fake_layouts.people(3, seconds=12.0))
    run_lines(DATA_SET)
    assert "chrom" in capfd.readouterr().out


def test_the_program_of_the_readme_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    [shown] = re.findall(r"# (\w+\(bpm=)", program)
    exec(program, {})
    assert capsys.readouterr().out.startswith(f"{shown}7")
