"""The hemodynamic model of the paper: vessel, wave, oscillator, FIR filter, bounds, and synthetic pulses."""

from .fir import Decay, decay, fir_length, truncation_bound, truncation_error
from .fit_oscillator import Identification, identify_forced, identify_free, identify_pulse
from .oscillator import Oscillator, Vessel, spectral_radius
from .pulse import Pulse, PulseConfig, pulse_wave

__all__ = [
    "Decay",
    "Identification",
    "Oscillator",
    "Pulse",
    "PulseConfig",
    "Vessel",
    "decay",
    "fir_length",
    "identify_forced",
    "identify_free",
    "identify_pulse",
    "pulse_wave",
    "spectral_radius",
    "truncation_bound",
    "truncation_error",
]
