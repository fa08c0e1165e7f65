"""The damped oscillator of the paper: from the vessel equations to the state-space model and its kernel.

The chain of the paper (section "Physics-Informed Temporal Modeling" and its derivation appendix):

    ρ ∂u/∂t + k u = −∂p/∂x,  Ā ∂u/∂x = −C ∂p/∂t           a segment of vessel
    ∂²p/∂t² + α ∂p/∂t = c² ∂²p/∂x²                          damped wave equation
    z″ + α z′ + ω² z = u(t)                                 one point of the skin: damped oscillator
    x_t = A x_{t−1} + B a_t,  z_t = C x_t                   semi-implicit Euler
    z_t = Σ g[m] a_{t−m},  g[m] = C Aᵐ B                    a causal convolution (Proposition 1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray


def positive(name: str, value: float, unit: str = "") -> float:
    """Return the number if it is finite and positive; otherwise raise an ArgumentError."""
    if not (isinstance(value, (int, float, np.number)) and math.isfinite(value) and value > 0):
        raise ArgumentError(name, value, f"a finite number > 0{' ' + unit if unit else ''}")
    return float(value)


def signal_1d(name: str, values: FloatArray, least: int = 1) -> FloatArray:
    """Return the signal as float64 (T,) if it is finite and long enough; otherwise raise an ArgumentError."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) < least:
        raise ArgumentError(
            name, f"shape {array.shape} of {array.dtype}", f"real numbers of shape (T,), T ≥ {least}"
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ArgumentError(name, "a signal with nan or infinity", "finite values")
    return array


@dataclass(frozen=True, slots=True)
class Vessel:
    """A vessel segment in the linearised 1-D momentum and continuity equations (SI units)."""

    density: float  # ρ, kg/m³
    compliance: float  # C, m²/Pa: area gained per pressure
    area: float  # Ā, m²: mean cross-section
    drag: float  # k, kg/(m³·s): viscous friction per volume and velocity

    def __post_init__(self) -> None:
        for name in ("density", "compliance", "area", "drag"):
            positive(name, getattr(self, name))

    @property
    def wave_speed_squared(self) -> float:
        """c² = Ā / (ρ C), in m²/s²."""
        return self.area / (self.density * self.compliance)

    @property
    def damping(self) -> float:
        """α = k / ρ, in 1/s: the "damping-related coefficient" of the damped wave equation.

        (ρC/Ā) p_tt + (kC/Ā) p_t = p_xx, divided by ρC/Ā, leaves α = k/ρ before p_t.
        """
        return self.drag / self.density


@dataclass(frozen=True, slots=True)
class Oscillator:
    """z″ + α z′ + ω² z = u, integrated by semi-implicit Euler: the state-space model of the paper.

    It is stable if and only if α > 0, ω > 0 and (ωΔt)² < 4 + 2αΔt (Jury's criterion on det A = 1/(1+αΔt)
    and tr A). Unstable parameters raise an ArgumentError.
    """

    alpha: float  # 1/s
    omega: float  # rad/s
    dt_s: float

    def __post_init__(self) -> None:
        alpha = positive("alpha", self.alpha, "1/s")
        omega = positive("omega", self.omega, "rad/s")
        dt_s = positive("dt_s", self.dt_s, "s")
        if not (omega * dt_s) ** 2 < 4 + 2 * alpha * dt_s:
            longest = (alpha + math.sqrt(alpha**2 + 4 * omega**2)) / omega**2
            raise ArgumentError(
                "dt_s",
                f"{dt_s:g} s with α = {alpha:g}, ω = {omega:g}: unstable, spectral radius ≥ 1",
                f"(ωΔt)² < 4 + 2αΔt, here dt_s < {longest:g} s",
            )
        if not spectral_radius(self.A) < 1:
            raise ArgumentError(
                "alpha, omega", f"{alpha:g}, {omega:g} at dt_s = {dt_s:g}: spectral radius rounds to 1",
                "damping and stiffness that the time step resolves",
            )  # fmt: skip

    @property
    def A(self) -> FloatArray:
        """The state matrix (2,2) of x = [z, v]."""
        dt, gain = self.dt_s, 1 / (1 + self.alpha * self.dt_s)
        return np.array([[1 - self.omega**2 * dt**2 * gain, dt * gain], [-(self.omega**2) * dt * gain, gain]])

    @property
    def B(self) -> FloatArray:
        """The input vector (2,)."""
        gain = 1 / (1 + self.alpha * self.dt_s)
        return np.array([self.dt_s**2 * gain, self.dt_s * gain])

    @property
    def C(self) -> FloatArray:
        """The output vector (2,), which selects the position."""
        return np.array([1.0, 0.0])

    @property
    def damping_ratio(self) -> float:
        """ζ = α / 2ω: underdamped below 1, overdamped above 1."""
        return self.alpha / (2 * self.omega)

    @property
    def spectral_radius(self) -> float:
        return spectral_radius(self.A)

    def recurrence(self, force: FloatArray) -> FloatArray:
        """Integrate the state-space model with `force` (T,) from rest, and return z (T,)."""
        drive = signal_1d("force", force)
        (a00, a01), (a10, a11) = self.A.tolist()
        b0, b1 = self.B.tolist()
        position, velocity = 0.0, 0.0
        out = np.empty(len(drive))
        for t, a in enumerate(drive.tolist()):
            position, velocity = (
                a00 * position + a01 * velocity + b0 * a,
                a10 * position + a11 * velocity + b1 * a,
            )
            out[t] = position
        return out

    def kernel(self, length: int) -> FloatArray:
        """Return the impulse response g[m] = C Aᵐ B for m < length (Proposition 1)."""
        if length < 1:
            raise ArgumentError("length", length, "at least 1 tap")
        states = np.empty((2, length))  # column m is Aᵐ B
        states[:, 0] = self.B
        power, known = self.A, 1
        while known < length:  # A^known advances all known columns at once
            more = min(known, length - known)
            states[:, known : known + more] = power @ states[:, :more]
            power, known = power @ power, known + more
        return self.C @ states

    def response(self, frequency_hz: FloatArray) -> FloatArray:
        """Return the complex gain H(f) = C (I − A e^{−iθ})⁻¹ B with θ = 2πfΔt."""
        delay = np.exp(-2j * np.pi * np.asarray(frequency_hz, dtype=np.float64) * self.dt_s)
        trace, det = float(np.trace(self.A)), 1 / (1 + self.alpha * self.dt_s)
        gain: FloatArray = self.B[0] / (1 - trace * delay + det * delay**2)
        return gain


def spectral_radius(matrix: FloatArray) -> float:
    """Return the largest |eigenvalue| of a square matrix."""
    array = np.asarray(matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ArgumentError("matrix", f"shape {array.shape}", "a square matrix")
    return float(np.abs(np.linalg.eigvals(array)).max())


def convolve(kernel: FloatArray, force: FloatArray) -> FloatArray:
    """Return the causal convolution Σ g[m] a_{t−m} with the length of the force, computed with FFTs."""
    taps, drive = signal_1d("kernel", kernel), signal_1d("force", force)
    size = 1 << (len(taps) + len(drive) - 1).bit_length()
    spectrum = np.fft.rfft(taps, size) * np.fft.rfft(drive, size)
    full: FloatArray = np.fft.irfft(spectrum, size)
    return full[: len(drive)]
