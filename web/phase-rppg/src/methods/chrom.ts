/**
 * CHROM: two colour differences in which specular light cancels; a port of methods/chrom.py.
 * G. de Haan, V. Jeanne, "Robust pulse rate from chrominance-based rPPG", IEEE TBME 60(10), 2013.
 */

import { reference } from "../data.js";
import type { RgbTrace, Waveform } from "../types.js";
import { checkedColours, deviation, pulseBand, ratio, runningMean, waveformLike, windowLength } from "./common.js";

const WINDOW_S = reference.chrom.WINDOW_S;

/** S = X_f − σ(X_f)/σ(Y_f)·Y_f in Hann windows that overlap by half, X = 3R−2G, Y = 1.5R+G−1.5B. */
export function extract(trace: RgbTrace): Waveform {
  const values = checkedColours(trace);
  const frames = values.length / 3;
  let length = windowLength(WINDOW_S, trace.fps, frames);
  if (length > 2) length -= length % 2;
  const level = runningMean(values, length);
  const x = new Float64Array(frames);
  const y = new Float64Array(frames);
  for (let t = 0; t < frames; t++) {
    const [r, g, b] = [0, 1, 2].map((c) => ratio(values[t * 3 + c], level[t * 3 + c])) as [number, number, number];
    x[t] = 3 * r - 2 * g;
    y[t] = 1.5 * r + g - 1.5 * b;
  }
  const fx = pulseBand(x, trace.fps);
  const fy = pulseBand(y, trace.fps);
  const hop = Math.max(length >> 1, 1);
  const out = new Float64Array(frames);
  const weight = new Float64Array(frames);
  // Windows extend beyond both ends by half, so that their sum is one everywhere.
  for (let start = -hop; start < frames; start += hop) {
    const first = Math.max(start, 0);
    const last = Math.min(start + length, frames);
    if (last <= first) continue;
    const sigmaY = deviation(fy.subarray(first, last));
    const alpha = sigmaY > 0 ? deviation(fx.subarray(first, last)) / sigmaY : 0;
    for (let t = first; t < last; t++) {
      const hann = Math.sin((Math.PI * (t - start + 0.5)) / length) ** 2;
      out[t] += hann * (fx[t] - alpha * fy[t]);
      weight[t] += hann;
    }
  }
  return waveformLike(trace, out.map((value, t) => ratio(value, weight[t])));
}
