"""Errors of worker processes keep their type, message and attributes."""

from __future__ import annotations

import pickle

import pytest

from phase_rppg import errors

ERRORS = [
    errors.PhaseError("our bug"),
    errors.InternalError("decoding face.mp4", "TypeError: no such option", "Traceback …"),
    errors.ArgumentError("fps", 0, "a positive number"),
    errors.UnknownNameError("world", "stret", ["street", "wild"]),
    errors.RecipeError("stream.toml", "no such key"),
    errors.MissingPackageError("matplotlib"),
    errors.VideoError("face.mp4", "no frames", "try another"),
    errors.DatasetLayoutError("data", "subjectN/vid.avi", ["a", "b"]),
    errors.RecordingError("subject3", "no label"),
    errors.WeightsError("net.onnx", "damaged"),
    errors.OutputError("out.png", "a folder"),
    errors.Interrupted("stopped"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_worker_arrives_whole(error: errors.PhaseError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.exit_code == error.exit_code
