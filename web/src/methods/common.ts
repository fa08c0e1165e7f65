/** What the methods share; the twin of methods/common.py. */

import { bandpass, removeLine } from "../signal/filters";
import { bridge } from "../signal/resample";
import { rint } from "../signal/arrays";
import type { RgbTrace, Waveform } from "../types";

const LOWEST_HZ = 0.6;
const HIGHEST_HZ = 8; // the pulse with its harmonics

/** The trace as finite values (T,3) with invalid stretches bridged. */
export const colours = (trace: RgbTrace): Float64Array => bridge(trace.values, trace.valid, 3);

export const waveOnClockOf = (trace: RgbTrace, values: Float64Array): Waveform =>
  ({ values, fps: trace.fps, startS: trace.startS, valid: trace.valid });

/** Centred mean over `count` samples of values (T,3), over fewer at the ends. */
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

/** Keep the pulse and its harmonics; a clock too slow for that is only freed of its drift. */
export function pulseBand(values: Float64Array, fps: number): Float64Array {
  const highHz = Math.min(HIGHEST_HZ, 0.45 * fps);
  return highHz <= 2 * LOWEST_HZ ? removeLine(values) : bandpass(values, fps, LOWEST_HZ, highHz, 2);
}

/** Frames in a window of the paper's duration at this frame rate, at most what there is. */
export const windowLength = (seconds: number, fps: number, count: number): number =>
  Math.min(Math.max(rint(seconds * fps), 2), count);

/** a / b, and 0 where b is not positive. */
export const ratio = (a: number, b: number): number => (b > 0 ? a / b : 0);

/** Standard deviation of part of an array. */
export function deviation(values: ArrayLike<number>): number {
  let mean = 0;
  for (let i = 0; i < values.length; i++) mean += values[i] / values.length;
  let variance = 0;
  for (let i = 0; i < values.length; i++) variance += (values[i] - mean) ** 2 / values.length;
  return Math.sqrt(variance);
}
