/** Functions shared by the methods; a port of methods/common.py. */

import { constants } from "../data.js";
import { bandpass, removeLinearTrend } from "../signal/filters.js";
import { interpolateInvalid } from "../signal/resample.js";
import { rint } from "../signal/arrays.js";
import type { RgbTrace, Waveform } from "../types.js";

const [LOWEST_HZ, HIGHEST_HZ] = constants.pulse_band_hz; // includes harmonics of the pulse

/** Values (T,3) of a trace, with invalid parts interpolated. */
export const checkedColours = (trace: RgbTrace): Float64Array => interpolateInvalid(trace.values, trace.valid, 3);

export const waveformLike = (trace: RgbTrace, values: Float64Array): Waveform =>
  ({ values, fps: trace.fps, startS: trace.startS, valid: trace.valid });

/** Centred running mean over `count` samples of values (T,3), shorter at the ends. */
export function runningMean(values: Float64Array, count: number): Float64Array {
  const half = Math.max(count, 1) >> 1;
  const frames = values.length / 3;
  const total = new Float64Array(values.length + 3);
  for (let i = 0; i < values.length; i++) total[i + 3] = total[i] + values[i];
  const out = new Float64Array(values.length);
  for (let i = 0; i < frames; i++) {
    const first = Math.max(i - half, 0);
    const last = Math.min(i + half + 1, frames);
    for (let c = 0; c < 3; c++) out[i * 3 + c] = (total[last * 3 + c] - total[first * 3 + c]) / (last - first);
  }
  return out;
}

/** Band-pass for the pulse and its harmonics; at a low frame rate only the drift is removed. */
export function pulseBand(values: Float64Array, fps: number): Float64Array {
  const highHz = Math.min(HIGHEST_HZ, 0.45 * fps);
  return highHz <= 2 * LOWEST_HZ ? removeLinearTrend(values) : bandpass(values, fps, LOWEST_HZ, highHz, 2);
}

/** Number of frames in a window of this duration, at most `count`. */
export const windowLength = (seconds: number, fps: number, count: number): number =>
  Math.min(Math.max(rint(seconds * fps), 2), count);

/** a / b, or 0 if b is not positive. */
export const ratio = (a: number, b: number): number => (b > 0 ? a / b : 0);

/** Standard deviation. */
export function deviation(values: ArrayLike<number>): number {
  let mean = 0;
  for (let i = 0; i < values.length; i++) mean += values[i] / values.length;
  let variance = 0;
  for (let i = 0; i < values.length; i++) variance += (values[i] - mean) ** 2 / values.length;
  return Math.sqrt(variance);
}
