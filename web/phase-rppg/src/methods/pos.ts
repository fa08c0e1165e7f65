/**
 * POS: projection onto the plane orthogonal to the skin tone; a port of methods/pos.py.
 * W. Wang, A. C. den Brinker, S. Stuijk, G. de Haan, "Algorithmic principles of remote PPG", IEEE TBME 64(7), 2017.
 */

import { reference } from "../data.js";
import type { RgbTrace, Waveform } from "../types.js";
import { checkedColours, ratio, waveformLike, windowLength } from "./common.js";

const WINDOW_S = reference.pos.WINDOW_S;
const PROJECTION = [[0, 1, -1], [-2, 1, 1]] as const;

/** Algorithm 1 of the paper with overlap-add; more blood is positive. */
export function extract(trace: RgbTrace): Waveform {
  const values = checkedColours(trace); // (T,3)
  const frames = values.length / 3;
  const length = windowLength(WINDOW_S, trace.fps, frames);
  const weights = windowWeights(values, length); // (W,3)
  const windows = weights.length / 3;
  const total = new Float64Array(weights.length + 3);
  for (let i = 0; i < weights.length; i++) total[i + 3] = total[i] + weights[i];
  const out = new Float64Array(frames);
  for (let t = 0; t < frames; t++) {
    const last = Math.min(t + 1, windows);
    const first = Math.min(Math.max(t - length + 1, 0), windows);
    for (let c = 0; c < 3; c++) out[t] -= values[t * 3 + c] * (total[last * 3 + c] - total[first * 3 + c]);
  }
  return waveformLike(trace, out);
}

/** The vector a (W,3) of each window: a·C = S₁ + σ(S₁)/σ(S₂)·S₂. */
function windowWeights(values: Float64Array, length: number): Float64Array {
  const frames = values.length / 3;
  const windows = frames - length + 1;
  const centre = [0, 1, 2].map((c) => {
    let total = 0;
    for (let t = 0; t < frames; t++) total += values[t * 3 + c];
    return total / frames;
  });
  // Running sums of x and of its products: 3 + 6 columns.
  const sums = new Float64Array((frames + 1) * 9);
  for (let t = 0; t < frames; t++) {
    const [r, g, b] = [0, 1, 2].map((c) => values[t * 3 + c] - centre[c]) as [number, number, number];
    [r, g, b, r * r, r * g, r * b, g * g, g * b, b * b].forEach((value, k) => {
      sums[(t + 1) * 9 + k] = sums[t * 9 + k] + value;
    });
  }
  const column = [[3, 4, 5], [4, 6, 7], [5, 7, 8]];
  const out = new Float64Array(windows * 3);
  for (let w = 0; w < windows; w++) {
    const mean = (k: number): number => (sums[(w + length) * 9 + k] - sums[w * 9 + k]) / length;
    const level = [0, 1, 2].map((c) => mean(c) + centre[c]);
    if (!level.every((value) => value > 0)) continue;
    const rows = PROJECTION.map((row) => row.map((p, c) => ratio(p, level[c])));
    const sigma = rows.map((row) => {
      let variance = 0;
      for (let c = 0; c < 3; c++)
        for (let d = 0; d < 3; d++) variance += row[c] * (mean(column[c][d]) - mean(c) * mean(d)) * row[d];
      return Math.sqrt(Math.max(variance, 0));
    });
    const alpha = ratio(sigma[0], sigma[1]);
    for (let c = 0; c < 3; c++) out[w * 3 + c] = rows[0][c] + alpha * rows[1][c];
  }
  return out;
}
