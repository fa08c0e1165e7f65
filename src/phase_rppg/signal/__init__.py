"""Pure functions on signals: one clock, clean bands, rates, their path over time, and how far to trust them.

    resample   irregular timestamps → uniform clock          rate      spectrum, interpolated peak, beats
    filters    detrending, zero-phase band-pass              track     the rate over windows
    quality    strength of a line, and who else shows it     hrv       variability and breathing

Arrays run along time in axis 0. Nothing here imports scipy until a function that needs it is called.
"""

from . import filters, hrv, quality, rate, rate_tracking, resample

__all__ = ["filters", "hrv", "quality", "rate", "rate_tracking", "resample"]
