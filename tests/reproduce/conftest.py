"""Four small synthetic data sets, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from phase_rppg.synth.writers import RecordingJob, writer

SECONDS = 4.2
SUBJECTS = 2
# Of each subject: the first recording; of MMPD one under each light.
CHOSEN = {"ubfc_rppg": (0,), "pure": (0,), "buaa_mihr": (0,), "mmpd": (0, 5, 10, 15)}


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all four data sets, each with two subjects."""
    root = tmp_path_factory.mktemp("fakes")
    for form, chosen in CHOSEN.items():
        fixed = {"codec.name": "mjpeg", "motion.kind": "still", "camera.fps": 30.0}
        job = RecordingJob(form, str(root / f"set-{form[:2]}"), "studio", SECONDS, height=96, fixed=fixed)
        plan = writer(form).plan(SUBJECTS)
        for subject in range(1, SUBJECTS + 1):
            own = [shot for shot in plan if shot.subject == subject]
            for index in chosen:
                job(own[index])
    return root
