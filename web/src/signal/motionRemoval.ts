/** Taking motion out of a wave: what the face's path explains of it is not the heart; the twin of signal/motion_removal.py. */

import type { Waveform } from "../types";
import { column, sum } from "./arrays";
import { bandpass } from "./filters";
import { bridge } from "./resample";
import { solve } from "./solve";

const FAINT = 0.005; // face widths: a path much fainter than this is left alone
const FIT_HZ = [0.5, 4] as const; // where path and wave are compared: the band of hearts, and a little beside it
const TYPICAL_HZ = 1.6; // turns a speed into the width of a swing
const NO_PATH = 1e-4; // face widths: less than any tracker tells

/** The wave without what `centre` (T,2), the place of the face in face widths, explains of it. */
export function withoutMotion(wave: Waveform, centre: Float64Array): Waveform {
  const { fps, valid } = wave;
  const topHz = Math.min(FIT_HZ[1], 0.45 * fps);
  if (sum(valid) < 2 * fps || topHz <= FIT_HZ[0]) return wave;
  const inBand = (values: Float64Array): Float64Array => bandpass(values, fps, FIT_HZ[0], topHz);
  const path = bridge(centre, valid, 2);
  const places = [0, 1].map((axis) => column(path, 2, axis));
  const speeds = places.map((place) => gradient(place).map((step) => (step * fps) / (2 * Math.PI * TYPICAL_HZ)));
  const moved = [...places, ...speeds, ...squares(places, valid)];
  const fitted = moved.map(inBand);
  const beat = inBand(bridge(wave.values, valid));
  const mean = (a: Float64Array, b: Float64Array): number => meanSeen(product(a, b), valid);
  const gram = Float64Array.from(fitted.flatMap((a, i) => fitted.map((b, k) => mean(a, b) + (i === k ? FAINT ** 2 : 0))));
  const weights = solve(gram, Float64Array.from(fitted, (a) => mean(a, beat)));
  return { ...wave, values: wave.values.map((value, t) => value - sum(moved.map((a, i) => weights[i] * a[t]))) };
}

/** x², x·y and y² of the path about its middle, over its spread: shading follows these, at twice the path's pace. */
function squares(places: Float64Array[], valid: Uint8Array): Float64Array[] {
  const [x, y] = places.map((place) => {
    const middle = meanSeen(place, valid);
    return place.map((value) => value - middle);
  });
  const [xx, xy, yy] = [product(x, x), product(x, y), product(y, y)];
  const spread = Math.max(Math.sqrt(meanSeen(xx, valid)), Math.sqrt(meanSeen(yy, valid)), NO_PATH);
  return [xx, xy, yy].map((values) => values.map((value) => value / spread));
}

const product = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value * b[i]);

/** The mean of the values that were seen. */
const meanSeen = (values: Float64Array, valid: Uint8Array): number =>
  sum(values.map((value, i) => (valid[i] ? value : 0))) / sum(valid);

/** Half the difference of both neighbours; at the ends the whole difference to the one. */
function gradient(values: Float64Array): Float64Array {
  const last = values.length - 1;
  return values.map((_, i) => {
    const [left, right] = [Math.max(i - 1, 0), Math.min(i + 1, last)];
    return (values[right] - values[left]) / Math.max(right - left, 1);
  });
}
