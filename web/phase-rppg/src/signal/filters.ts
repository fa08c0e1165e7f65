/** Band-pass and detrending; a port of signal/filters.py. */

import { sum } from "./arrays.js";
import { irfft, rfft } from "./fft.js";

/** Subtract a straight line by weighted least squares. */
export function removeLinearTrend(values: Float64Array, weights?: Float64Array): Float64Array {
  const count = values.length;
  const w = weights ?? new Float64Array(count).fill(1);
  const total = sum(w);
  const out = new Float64Array(count);
  if (total <= 0) return out;
  let meanT = 0;
  let mean = 0;
  for (let i = 0; i < count; i++) {
    meanT += w[i] * i;
    mean += w[i] * values[i];
  }
  meanT /= total;
  mean /= total;
  let spread = 0;
  let slope = 0;
  for (let i = 0; i < count; i++) {
    const t = i - meanT;
    out[i] = values[i] - mean;
    spread += w[i] * t * t;
    slope += w[i] * t * out[i];
  }
  if (spread > 0) for (let i = 0; i < count; i++) out[i] -= ((i - meanT) * slope) / spread;
  return out;
}

/** Zero-phase Butterworth band-pass. */
export function bandpass(values: Float64Array, fps: number, lowHz: number, highHz: number, order = 2): Float64Array {
  const count = values.length;
  if (!(lowHz > 0 && lowHz < highHz && highHz < fps / 2)) throw new RangeError(`band ${lowHz}–${highHz} Hz at ${fps} fps`);
  if (count < 2) return new Float64Array(count);
  const pad = Math.min(count - 1, Math.ceil((3 * fps) / lowHz));
  const padded = new Float64Array(count + 2 * pad);
  for (let i = 0; i < pad; i++) {
    padded[i] = 2 * values[0] - values[pad - i];
    padded[pad + count + i] = 2 * values[count - 1] - values[count - 2 - i];
  }
  padded.set(values, pad);
  const size = fastLength(padded.length);
  const half = rfft(removeLinearTrend(padded), size);
  for (let i = 0; i < half.re.length; i++) {
    const gain = butterworthGain((i * fps) / size, fps, lowHz, highHz, order);
    half.re[i] *= gain;
    half.im[i] *= gain;
  }
  return irfft(half, size).slice(pad, pad + count);
}

/** Return the next length ≥ count of the form 2ᵃ·{1, 3, 5, 9, 15}, which transforms fast. */
export function fastLength(count: number): number {
  let best = Infinity;
  for (const odd of [1, 3, 5, 9, 15]) {
    let size = odd;
    while (size < count) size *= 2;
    best = Math.min(best, size);
  }
  return best;
}

/** |H|² of the digital Butterworth band-pass (bilinear transform), applied forwards and backwards. */
function butterworthGain(hz: number, fps: number, lowHz: number, highHz: number, order: number): number {
  const warp = Math.tan((Math.PI * Math.min(hz, (fps / 2) * (1 - 1e-9))) / fps);
  if (warp <= 0) return 0;
  const low = Math.tan((Math.PI * lowHz) / fps);
  const high = Math.tan((Math.PI * highHz) / fps);
  const q = (warp * warp - low * high) / (warp * (high - low));
  return 1 / (1 + Math.min(Math.abs(q), 1e12) ** (2 * order));
}
