"""The hemodynamics of the paper as numbers: vessel, wave, oscillator, filter, bounds, and pulses."""

from .oscillator import Oscillator, Vessel
from .pulse import Pulse, PulseConfig, pulse_wave

__all__ = ["Oscillator", "Pulse", "PulseConfig", "Vessel", "pulse_wave"]
