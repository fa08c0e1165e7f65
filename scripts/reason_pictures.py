"""Make a clip for each reason for no reading, measure it, and show both in docs/guide/read-a-result.md.

python scripts/reason_pictures.py [REASON …]     all reasons, or some of them; scripts/gallery runs it
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from phase_rppg import measure, synth
from phase_rppg.report.plot_style import BLUE, QUIET, styled
from phase_rppg.report.plots import display_filter, draw_wave
from phase_rppg.synth.motion import Poses
from phase_rppg.synth.recording import SyntheticRecording, make_recording
from phase_rppg.types import FloatArray, Frame, Reason, Waveform
from phase_rppg.video.decode import VideoFile
from phase_rppg.video.encode import write_video

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guide" / "read-a-result.md"
PICTURES = ROOT / "docs" / "images" / "reasons"
BEGIN, END = "<!-- begin: scripts/reason_pictures.py -->\n", "<!-- end -->\n"
SHAPE = (240, 320)  # height, width of the clips
SHOWN_S = 12.0  # time axis of every picture
COLOURS = 96  # of a picture; more colours show no difference and take more bytes
DISTURBANCE_BPM = 80.0  # of the lamp and of the head
LIKE_THE_DEMO = {
    "pulse.bpm": 72.0, "pulse.amplitude": 0.015, "subject.fitzpatrick": 2,
    "motion.kind": "still", "light.kind": "constant", "frame.face_px": 280.0,
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What is wrong in a clip; everything else is a good clip of a person."""

    about: str
    fixed: Mapping[str, Any] = field(default_factory=dict)  # settings of the generator
    world: str = "studio"
    seconds: float = 12.0
    move: Callable[[Poses], None] | None = None
    grey: bool = False
    pause_s: float = 0.0  # without frames, in the middle of the clip
    cause: tuple[str, Callable[[SyntheticRecording, list[Frame]], FloatArray]] | None = None  # second curve


def _walk_away(poses: Poses) -> None:
    poses.x += 1.6 * (np.clip(poses.t_s - 3, 0, 1) - np.clip(poses.t_s - 8, 0, 1))


def _bob(poses: Poses) -> None:
    poses.y += 0.06 * np.sin(2 * np.pi * DISTURBANCE_BPM / 60 * poses.t_s)


def _height(recording: SyntheticRecording, frames: list[Frame]) -> FloatArray:
    return -recording.boxes()[: len(frames), 1]


def _background(recording: SyntheticRecording, frames: list[Frame]) -> FloatArray:
    del recording
    return np.array([frame.rgb[:60, :60].mean() for frame in frames])


SCENES: dict[Reason, Scene] = {
    Reason.NO_FACE: Scene("A wall, and nobody in front of it.", world="wall"),
    Reason.FACE_LOST: Scene("A person leaves the picture for five of twelve seconds.", move=_walk_away),
    Reason.FACE_TOO_SMALL: Scene(
        "A person far from the camera: the face is 23 pixels wide.", {"frame.face_px": 60.0}
    ),
    Reason.NO_PULSE: Scene(
        "A printed photo. Its waveform is noise of the camera.", {"subject.kind": "photo"}
    ),
    Reason.LIGHT_FLICKER: Scene(
        "A person below a lamp whose light changes 80 times per minute. The wall changes with the face.",
        {"light.kind": "lamp", "light.strength": 3.0, "light.lamp_bpm": DISTURBANCE_BPM},
        cause=("brightness of the background", _background),
    ),
    Reason.MOTION: Scene(
        "A living person whose head bobs 80 times per minute, in hard light from one side.",
        {"motion.kind": "fixed", "light.hard": 0.9, "light.side": 0.7},
        move=_bob,
        cause=("height of the head", _height),
    ),
    Reason.TOO_SHORT: Scene("A good clip of four seconds.", seconds=4.0),
    Reason.TOO_DARK: Scene("A person in a dark room.", {"camera.skin_level": 0.015, "camera.noise": 0.7}),
    Reason.CLIPPED: Scene(
        "An overexposed face: most skin pixels have the largest value.", {"camera.skin_level": 1.0}
    ),
    Reason.LOW_FPS: Scene("A camera with seven frames per second.", {"camera.fps": 7.0}),
    Reason.BAD_TIMESTAMPS: Scene("A recording that stops for two seconds.", seconds=10.0, pause_s=2.0),
    Reason.NO_COLOUR: Scene("A camera in its infrared or black-and-white mode.", grey=True),
}


def main(names: list[str]) -> None:
    reasons = [Reason(name) for name in names] or list(SCENES)
    PICTURES.mkdir(parents=True, exist_ok=True)
    shown = recorded_outputs(PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        for reason in reasons:
            clip, recording = write_clip(reason, Path(place))
            shown[reason] = output_of(clip)
            draw(reason, clip, recording, PICTURES / f"{reason}.png")
            print(f"written: docs/images/reasons/{reason}.png", flush=True)
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")


def write_clip(reason: Reason, folder: Path) -> tuple[Path, SyntheticRecording]:
    """Generate the clip of a reason and write it as a video file."""
    scene = SCENES[reason]
    fixed = {**LIKE_THE_DEMO, **scene.fixed} if scene.world == "studio" else scene.fixed
    recording = make_recording(
        synth.load(scene.world), 7, 0, seconds=scene.seconds, height=SHAPE[0], width=SHAPE[1], fixed=fixed
    )
    if scene.move is not None:
        scene.move(recording.drawn.scene.actors[0].poses)
    frames: Iterable[Any] = recording.frames()
    if scene.grey:
        frames = (np.repeat(rgb.mean(-1, keepdims=True).astype(np.uint8), 3, axis=-1) for rgb in frames)
    t_s = recording.t_s + np.where(recording.t_s > scene.seconds / 2, scene.pause_s, 0.0)
    clip = folder / f"{reason.lower()}.mp4"
    write_video(clip, frames, t_s=t_s, crf=16, preset="veryfast")
    return clip, recording


def output_of(clip: Path) -> str:
    """Return what `phase measure` prints about a clip, on both streams."""
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8", "COLUMNS": "120", "NO_COLOR": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "phase_rppg", "measure", clip.name], cwd=clip.parent, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    return done.stdout


@styled
def draw(reason: Reason, clip: Path, recording: SyntheticRecording, path: Path) -> None:
    """Draw three frames of the clip above its pulse waveform."""
    frames = list(VideoFile(clip).frames())
    figure = Figure(figsize=(6.4, 2.6), dpi=100)
    for column, index in enumerate(np.linspace(0, len(frames) - 1, 5).astype(int)[1:-1]):
        axes = figure.add_axes((0.05 + 0.35 * column, 0.5, 0.236, 0.436))
        axes.imshow(frames[index].rgb, aspect="auto")
        axes.axis("off")
        axes.set_title(f"{frames[index].t_s:.1f} s", fontsize=8, pad=2)
    axes = figure.add_axes((0.05, 0.165, 0.936, 0.31))
    faces = measure(str(clip)).faces
    if faces:
        draw_wave(axes, faces[0], 0.0, SHOWN_S)
    else:
        axes.text(0.5, 0.5, "no face, so no waveform", transform=axes.transAxes, ha="center", color=QUIET)
        axes.set(yticks=[], xlabel="time (s)", ylabel="waveform")
    draw_cause(axes, SCENES[reason], recording, frames)
    axes.set(xlim=(0, SHOWN_S), ylabel="waveform")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    picture = Image.open(buffer).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_cause(axes: Axes, scene: Scene, recording: SyntheticRecording, frames: list[Frame]) -> None:
    """Draw what has the rate of the disturbance, filtered in the same way as the waveform."""
    if scene.cause is None:
        return
    name, values_of = scene.cause
    values = values_of(recording, frames)
    cause = Waveform(values, recording.fps, 0.0, np.ones(len(values), bool))
    shown = display_filter(cause)
    [line] = axes.plot(cause.t_s, shown / np.abs(shown).max(), color=BLUE, lw=0.9)
    axes.set_ylim(-1.25, 2.0)  # room for the legend
    axes.legend([line], [name], loc="upper right")


def section(shown: Mapping[Reason, str]) -> str:
    """Return the Markdown of all reasons."""
    parts = []
    for reason, scene in SCENES.items():
        output = "".join(f"    {line}\n" for line in shown[reason].splitlines())
        parts.append(
            f"### {reason}\n{scene.about}\n\n"
            f"![{reason}: frames and waveform of the clip](../images/reasons/{reason}.png)\n\n"
            f"    $ phase measure {reason.lower()}.mp4\n{output}"
        )
    return "\n".join(parts)


def with_section(page: str, shown: Mapping[Reason, str]) -> str:
    """Return the page with the section between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{section(shown)}{END}{after}"


def recorded_outputs(page: str) -> dict[Reason, str]:
    """Return the output of each clip that the page shows."""
    found = {}
    for reason in Reason:
        _, _, rest = page.partition(f"    $ phase measure {reason.lower()}.mp4\n")
        lines = rest.split("\n\n")[0].splitlines()
        found[reason] = "".join(f"{line[4:]}\n" for line in lines if line.startswith("    "))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
