"""Processing of one-dimensional signals, as functions without side effects.

    resample, uniform_clock   irregular timestamps to a uniform clock
    filters                   detrending, zero-phase band-pass
    rate                      the rate estimator: spectrum, interpolated peak, beats
    rate_tracking             Bayesian filter of the rate over windows
    quality                   quality features: signal-to-noise ratio, colour change, background coherence
    motion_removal            regression of head motion out of a waveform
    beat_jitter, hrv          timing error of beats, heart rate variability, breathing rate
    constants                 frequency bands and time limits

Time is axis 0 of every array. A function imports scipy only when it is called.
"""

from . import filters, hrv, quality, rate, rate_tracking, resample

__all__ = ["filters", "hrv", "quality", "rate", "rate_tracking", "resample"]
