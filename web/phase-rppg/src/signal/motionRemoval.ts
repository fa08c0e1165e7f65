/** Regression of a waveform on the motion of the face; a port of signal/motion_removal.py. */

import { constants, reference } from "../data.js";
import type { Waveform } from "../types.js";
import { column, sum } from "./arrays.js";
import { bandpass } from "./filters.js";
import { interpolateInvalid } from "./resample.js";
import { solve } from "./solve.js";

const RIDGE_FACE_WIDTHS = reference.motion_removal.RIDGE_FACE_WIDTHS; // face widths; regularisation for small motion
const FIT_HZ = constants.motion_band_hz; // band of the regression: heart rates with a margin
const TYPICAL_HZ = reference.motion_removal.TYPICAL_HZ; // scales speed to displacement
const MIN_SPREAD = reference.motion_removal.MIN_SPREAD; // face widths; below the resolution of the tracker

/** Return the waveform without what `centre` (T,2), the face position in face widths, explains. */
export function removeMotion(wave: Waveform, centre: Float64Array): Waveform {
  const { fps, valid } = wave;
  const topHz = Math.min(FIT_HZ[1], 0.45 * fps);
  if (sum(valid) < 2 * fps || topHz <= FIT_HZ[0]) return wave;
  const inBand = (values: Float64Array): Float64Array => bandpass(values, fps, FIT_HZ[0], topHz);
  const path = interpolateInvalid(centre, valid, 2);
  const places = [0, 1].map((axis) => column(path, 2, axis));
  const speeds = places.map((place) => gradient(place).map((step) => (step * fps) / (2 * Math.PI * TYPICAL_HZ)));
  const moved = [...places, ...speeds, ...squares(places, valid)];
  const fitted = moved.map(inBand);
  const beat = inBand(interpolateInvalid(wave.values, valid));
  const mean = (a: Float64Array, b: Float64Array): number => meanValid(product(a, b), valid);
  const gram = Float64Array.from(fitted.flatMap((a, i) => fitted.map((b, k) => mean(a, b) + (i === k ? RIDGE_FACE_WIDTHS ** 2 : 0))));
  const weights = solve(gram, Float64Array.from(fitted, (a) => mean(a, beat)));
  return { ...wave, values: wave.values.map((value, t) => value - sum(moved.map((a, i) => weights[i] * a[t]))) };
}

/** x², x·y and y² of the centred path over its standard deviation; shading follows these terms. */
function squares(places: Float64Array[], valid: Uint8Array): Float64Array[] {
  const [x, y] = places.map((place) => {
    const middle = meanValid(place, valid);
    return place.map((value) => value - middle);
  });
  const [xx, xy, yy] = [product(x, x), product(x, y), product(y, y)];
  const spread = Math.max(Math.sqrt(meanValid(xx, valid)), Math.sqrt(meanValid(yy, valid)), MIN_SPREAD);
  return [xx, xy, yy].map((values) => values.map((value) => value / spread));
}

const product = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value * b[i]);

/** Mean of the valid values. */
const meanValid = (values: Float64Array, valid: Uint8Array): number =>
  sum(values.map((value, i) => (valid[i] ? value : 0))) / sum(valid);

/** Central differences, one-sided at the ends. */
function gradient(values: Float64Array): Float64Array {
  const last = values.length - 1;
  return values.map((_, i) => {
    const [left, right] = [Math.max(i - 1, 0), Math.min(i + 1, last)];
    return (values[right] - values[left]) / Math.max(right - left, 1);
  });
}
