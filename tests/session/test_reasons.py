"""The advice fits the cause of a missing reading."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phase_rppg.session.reasons import ADVICE, advice
from phase_rppg.types import NoReading, Quality, Reason

pytestmark = pytest.mark.smoke

GOOD = Quality(5, 0.002, 0, 0, 1, 200, 130, 0, 0.4, 30, 0.034)
NO_PULSE = Reason.NO_PULSE


def test_a_short_good_clip_should_only_be_longer() -> None:
    near_miss = NoReading(NO_PULSE, 0.0, 12.0, 0.9, 61.2, p_alive=0.91)
    text = "probably 61 bpm (82 %), not sure enough; film 20 s more"
    assert advice(near_miss, GOOD) == text
    assert advice(near_miss, GOOD, bits_per_pixel=0.43) == text


def test_a_long_near_miss_needs_better_conditions() -> None:
    near_miss = NoReading(NO_PULSE, 0.0, 30.0, 0.6, 61.2)
    assert advice(near_miss, GOOD).endswith("not sure enough; keep still in steady light")
    assert advice(near_miss, replace(GOOD, luma=50)).endswith("not sure enough; add light")


@pytest.mark.parametrize(
    ("duration_s", "more_s"), [(1.0, 30), (10.0, 20), (10.1, 20), (20.0, 10), (29.9, 10)]
)
def test_the_missing_time_is_rounded_up(duration_s: float, more_s: int) -> None:
    near_miss = NoReading(NO_PULSE, 5.0, 5.0 + duration_s, 0.6, 61.2)
    assert advice(near_miss, GOOD).endswith(f"; film {more_s} s more")


def test_compression_is_named_only_in_strongly_compressed_files() -> None:
    refused = NoReading(NO_PULSE, 0.0, 40.0, 0.2)
    assert advice(refused, GOOD, 0.01) == "no pulse that can be trusted; record with a higher bit rate"
    for bits_per_pixel in (None, 0.2):
        assert advice(refused, GOOD, bits_per_pixel) == ADVICE[NO_PULSE]


@pytest.mark.parametrize(
    ("poor", "text"),
    [
        ({"luma": 40}, "add light"),
        ({"face_px": 50}, "come closer to the camera"),
        ({"motion": 0.3}, "keep still"),
        ({"clipped": 0.3}, "use less light or exposure"),
        ({"fps": 12}, "record more frames per second"),
    ],
)
def test_a_poor_quality_feature_is_named_before_compression(poor: dict[str, float], text: str) -> None:
    refused = NoReading(NO_PULSE, 0.0, 40.0, 0.2)
    assert advice(refused, replace(GOOD, **poor), 0.01) == f"no pulse that can be trusted; {text}"


def test_a_short_clip_without_a_probable_rate_gets_both_remedies() -> None:
    refused = NoReading(NO_PULSE, 0.0, 12.0, 0.2)
    assert advice(refused) == "no pulse that can be trusted; film 20 s more and keep still in steady light"


def test_a_confidence_is_never_complete() -> None:
    assert "(99 %)" in advice(NoReading(NO_PULSE, 0, 40, 0.999, 70, p_alive=0.999))


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not NO_PULSE])
def test_other_reasons_have_their_own_advice(reason: Reason) -> None:
    assert advice(NoReading(reason, 0, 12)) == ADVICE[reason]
    near_miss = advice(NoReading(reason, 0, 12, 0.75, 70, p_alive=0.8))
    assert near_miss == f"probably 70 bpm (60 %), not sure enough; {ADVICE[reason]}"
