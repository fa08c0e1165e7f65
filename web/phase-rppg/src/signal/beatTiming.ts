/** Beat times by comparison with a template; a port of signal/beat_timing.py. */

import { reference } from "../data.js";
import type { Waveform } from "../types.js";
import { clip, median, rint, sum } from "./arrays.js";
import { irfft, rfft } from "./fft.js";
import { bandpass, fastLength } from "./filters.js";
import { interpolateInvalid } from "./resample.js";

const MIN_BEATS = reference.beat_timing.MIN_BEATS; // fewer beats give no template
const BAND = reference.beat_timing.BAND; // pass band, in heart rates
const REACH = reference.beat_timing.REACH; // half length of the template, in beat intervals
const MAX_SHIFT_S = reference.beat_timing.MAX_SHIFT_S;
const MAX_SHIFT = reference.beat_timing.MAX_SHIFT; // in beat intervals
const EDGE = reference.beat_timing.EDGE; // beats nearer to an invalid sample are left out, in beat intervals
const UPSAMPLING = reference.beat_timing.UPSAMPLING;
const PAD_S = reference.beat_timing.PAD_S;
const ROUNDS = reference.beat_timing.ROUNDS;

/** Return the beats, each shifted to match the template; beats at the ends of the valid samples are left out. */
export function refineBeats(wave: Waveform, foundS: readonly number[]): number[] {
  if (foundS.length < MIN_BEATS) return [...foundS];
  const intervalS = median(foundS.slice(1).map((t, i) => t - foundS[i]));
  const timesS = foundS.filter((t) => hasSamples(wave, t, EDGE * intervalS));
  const low = BAND[0] / intervalS;
  const high = Math.min(BAND[1] / intervalS, 0.45 * wave.fps);
  if (low >= high || timesS.length < MIN_BEATS) return timesS;
  const x = bandpass(interpolateInvalid(wave.values, wave.valid), wave.fps, low, high, 2);
  const { fine, startS, hz } = interpolated(x, wave);
  const reach = rint(REACH * intervalS * hz);
  const most = rint(Math.min(MAX_SHIFT_S, MAX_SHIFT * intervalS) * hz);
  const whole = timesS.map((_, i) => i).filter((i) => hasSamples(wave, timesS[i], (reach + most) / hz));
  if (whole.length < MIN_BEATS) return timesS;
  for (let round = 0; round < ROUNDS; round++) {
    const at = whole.map((i) => rint((timesS[i] - startS) * hz));
    const pieces = at.map((middle) =>
      Float64Array.from({ length: 2 * (reach + most) + 1 }, (_, k) => fine[clip(middle - reach - most + k, 0, fine.length - 1)]),
    );
    const shifts = shiftsOf(pieces, most);
    const movedS = whole.map((i, n) => (shifts[n] === null ? timesS[i] : startS + (at[n] + shifts[n]) / hz));
    const offsetS = median(whole.map((i, n) => movedS[n] - timesS[i]));
    whole.forEach((i, n) => (timesS[i] = movedS[n] - offsetS));
  }
  return timesS;
}

/** Return whether all samples within `reachS` of a time are valid. */
function hasSamples(wave: Waveform, timeS: number, reachS: number): boolean {
  const first = Math.floor((timeS - reachS - wave.startS) * wave.fps);
  const stop = Math.ceil((timeS + reachS - wave.startS) * wave.fps) + 1;
  return first >= 0 && stop <= wave.values.length && !wave.valid.subarray(first, stop).includes(0);
}

/** Return the wave on a finer clock, the time of its first sample and its sample rate. */
function interpolated(x: Float64Array, wave: Waveform): { fine: Float64Array; startS: number; hz: number } {
  const last = x.length - 1;
  const pad = Math.min(rint(PAD_S * wave.fps), last);
  const padded = Float64Array.from({ length: x.length + 2 * pad }, (_, k) => {
    const i = k - pad;
    const outside = Math.max(-i, i - last); // samples beyond an end
    if (outside <= 0) return x[i];
    const fade = Math.sin(((Math.PI / 2) * (pad - outside + 0.5)) / pad) ** 2; // no step at the ends
    return fade * (i < 0 ? 2 * x[0] - x[-i] : 2 * x[last] - x[last - outside]);
  });
  const size = fastLength(padded.length);
  const half = rfft(padded, size);
  const count = ((size * UPSAMPLING) >> 1) + 1;
  const wide = { re: new Float64Array(count), im: new Float64Array(count) };
  wide.re.set(half.re);
  wide.im.set(half.im);
  const fine = irfft(wide, size * UPSAMPLING).map((value) => UPSAMPLING * value);
  return { fine, startS: wave.startS - pad / wave.fps, hz: wave.fps * UPSAMPLING };
}

/** Return the shift of each piece against the median piece; null if the best match is at an end. */
function shiftsOf(pieces: readonly Float64Array[], most: number): (number | null)[] {
  const length = pieces[0].length - 2 * most;
  const weights = Float64Array.from({ length }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 1)) / (length + 1)));
  const total = sum(weights);
  const weighted = (values: Float64Array): number => values.reduce((all, v, i) => all + v * weights[i], 0);
  const scaled = pieces.map((piece) => {
    const middle = piece.subarray(most, most + length);
    const level = weighted(middle) / total;
    const centred = middle.map((v) => v - level);
    const norm = Math.max(Math.sqrt(weighted(centred.map((v) => v * v))), 1e-300);
    return centred.map((v) => v / norm);
  });
  const template = Float64Array.from({ length }, (_, i) => median(scaled.map((piece) => piece[i])));
  const level = weighted(template) / total;
  const kernel = template.map((v, i) => weights[i] * (v - level));
  return pieces.map((piece) => {
    const match = Float64Array.from({ length: 2 * most + 1 }, (_, k) => kernel.reduce((all, v, i) => all + v * piece[k + i], 0));
    const best = match.reduce((top, v, i) => (v > match[top] ? i : top), 0);
    if (best === 0 || best === 2 * most) return null;
    const bend = match[best - 1] - 2 * match[best] + match[best + 1];
    return best - most + (bend < 0 ? (0.5 * (match[best - 1] - match[best + 1])) / bend : 0);
  });
}
