/** Resampling to a uniform clock by timestamps; a port of signal/resample.py. */

import { constants } from "../data.js";
import { all, any, clip, interp, searchSorted } from "./arrays.js";

const { max_gap_s: MAX_GAP_S, clock_tolerance: CLOCK_SLACK } = constants; // tolerance for rounding, in samples

/** Resample values (T,C) with increasing timestamps to `fps`, starting at the first timestamp. */
export function toUniform(
  tS: Float64Array, values: Float64Array, columns: number, fps: number, valid?: Uint8Array, maxGapS: number = MAX_GAP_S,
): { values: Float64Array; startS: number; valid: Uint8Array } {
  const first = tS[0];
  const count = Math.floor((tS[tS.length - 1] - first) * fps + CLOCK_SLACK) + 1;
  const out = new Float64Array(count * columns);
  const seen: number[] = [];
  for (let i = 0; i < tS.length; i++) {
    let finite = !valid || valid[i] === 1;
    for (let c = 0; c < columns; c++) finite &&= Number.isFinite(values[i * columns + c]);
    if (finite) seen.push(i);
  }
  const inside = new Uint8Array(count);
  if (seen.length === 0) return { values: out, startS: first, valid: inside };
  const knownS = Float64Array.from(seen, (i) => tS[i]);
  const slackS = CLOCK_SLACK / fps;
  for (let g = 0; g < count; g++) {
    const t = first + g / fps;
    const right = clip(searchSorted(knownS, t - slackS), 0, knownS.length - 1);
    const left = Math.abs(knownS[right] - t) <= slackS ? right : Math.max(right - 1, 0);
    const spanS = knownS[right] - knownS[left];
    const share = spanS > 0 ? clip((t - knownS[left]) / spanS, 0, 1) : 0;
    for (let c = 0; c < columns; c++) {
      const a = values[seen[left] * columns + c];
      const b = values[seen[right] * columns + c];
      out[g * columns + c] = a * (1 - share) + b * share;
    }
    const within = t >= knownS[0] - slackS && t <= knownS[knownS.length - 1] + slackS;
    inside[g] = within && spanS <= maxGapS + slackS ? 1 : 0;
  }
  return { values: out, startS: first, valid: inside };
}

/** Interpolate invalid samples of (T,C) linearly, so that filters see no steps. */
export function interpolateInvalid(values: Float64Array, valid: Uint8Array, columns = 1): Float64Array {
  if (all(valid)) return values;
  const out = new Float64Array(values.length);
  if (!any(valid)) return out;
  const index: number[] = [];
  valid.forEach((flag, i) => flag && index.push(i));
  for (let c = 0; c < columns; c++) {
    const known = index.map((i) => values[i * columns + c]);
    for (let i = 0; i < valid.length; i++) out[i * columns + c] = interp(i, index, known);
  }
  return out;
}
