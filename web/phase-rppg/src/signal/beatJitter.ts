/** Timing error of beats, from their intervals and from the noise of the waveform; a port of signal/beat_jitter.py. */

import { reference } from "../data.js";
import type { Waveform } from "../types.js";
import { all, clip, interp, mean, median, rint, sum } from "./arrays.js";
import { bandpass } from "./filters.js";
import { normalIntervals } from "./hrv.js";
import { spectrum } from "./rate.js";

const WINDOW_S = reference.beat_jitter.WINDOW_S;
const MIN_BEATS = reference.beat_jitter.MIN_BEATS; // per window, to estimate its rate
const MAX_PAUSE = reference.beat_jitter.MAX_PAUSE; // of the median interval: a longer one is a missed beat
const HARMONIC_HALF_WIDTH_HZ = reference.beat_jitter.HARMONIC_HALF_WIDTH_HZ; // half-width of a peak; breathing widens it, and that is not noise
const HANN_BANDWIDTH = reference.beat_jitter.HANN_BANDWIDTH; // noise bandwidth of the Hann window, in 1 / its length
const BAND = reference.beat_jitter.BAND; // in heart rates; the band of `findBeats`

const NOISE_BAND = reference.beat_jitter.NOISE_BAND; // cycles per beat, above which the intervals contain only timing errors
const MIN_INTERVALS = reference.beat_jitter.MIN_INTERVALS;
const INTERVAL_FACTOR = reference.beat_jitter.INTERVAL_FACTOR;
const WAVE_LIMITS = reference.beat_jitter.WAVE_LIMITS;
const WAVE_FACTOR = reference.beat_jitter.WAVE_FACTOR;

/** Return the standard deviation of the timing error of beats; infinite if it cannot be estimated. */
export function beatJitterS(wave: Waveform, beatsS: readonly number[]): number {
  const byWave = waveJitterS(wave, beatsS);
  const byIntervals = intervalJitterS(beatsS);
  if (byIntervals === null) return WAVE_FACTOR * byWave;
  return Math.min(Math.max(INTERVAL_FACTOR * byIntervals, WAVE_LIMITS[0] * byWave), WAVE_LIMITS[1] * byWave);
}

/** Return the timing error that explains the fastest changes of the intervals; null for few intervals. */
function intervalJitterS(beatsS: readonly number[]): number | null {
  const intervalsS = beatsS.slice(1).map((t, i) => t - beatsS[i]);
  const normal = normalIntervals(intervalsS);
  const places = intervalsS.map((_, i) => i).filter((i) => normal[i]);
  if (places.length < MIN_INTERVALS) return null;
  const known = places.map((i) => intervalsS[i]);
  const x = intervalsS.map((_, i) => interp(i, places, known));
  const middle = mean(x);
  const count = x.length;
  const taper = x.map((_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 1)) / (count + 1)));
  let [power, scale] = [0, 0];
  for (let k = Math.ceil(NOISE_BAND * count - 1e-9); k <= count >> 1; k++) {
    let [re, im] = [0, 0];
    x.forEach((value, i) => {
      re += (value - middle) * taper[i] * Math.cos((2 * Math.PI * k * i) / count);
      im += (value - middle) * taper[i] * Math.sin((2 * Math.PI * k * i) / count);
    });
    power += re * re + im * im;
    scale += 2 - 2 * Math.cos((2 * Math.PI * k) / count);
  }
  return Math.sqrt(power / sum(taper.map((w) => w * w)) / scale);
}

/** Return the timing error that the noise between the harmonics explains: the median over windows. */
function waveJitterS(wave: Waveform, beatsS: readonly number[]): number {
  const size = rint(WINDOW_S * wave.fps);
  const found: number[] = [];
  for (let first = 0; first + size <= wave.values.length; first += size) {
    const startS = wave.startS + first / wave.fps;
    const inside = beatsS.filter((t) => t >= startS && t < startS + WINDOW_S);
    if (inside.length < MIN_BEATS || !all(wave.valid.subarray(first, first + size))) continue;
    const intervalsS = inside.slice(1).map((t, i) => t - inside[i]);
    if (Math.max(...intervalsS) < MAX_PAUSE * median(intervalsS)) found.push(variance(...withConstantInterval(wave, inside)));
  }
  return found.length > 0 ? Math.sqrt(median(found)) : Infinity;
}

/** Return the wave between the first and the last beat, resampled to equal intervals, and the interval. */
function withConstantInterval(wave: Waveform, beatsS: readonly number[]): [Waveform, number] {
  const intervalS = median(beatsS.slice(1).map((t, i) => t - beatsS[i]));
  const evenS = beatsS.map((_, i) => beatsS[0] + intervalS * i);
  const count = Math.ceil((evenS[evenS.length - 1] - evenS[0]) * wave.fps);
  const values = Float64Array.from({ length: count }, (_, i) => {
    const at = (interp(evenS[0] + i / wave.fps, evenS, beatsS) - wave.startS) * wave.fps;
    const left = clip(Math.floor(at), 0, wave.values.length - 2);
    const share = clip(at - left, 0, 1);
    return wave.values[left] + share * (wave.values[left + 1] - wave.values[left]);
  });
  return [{ values, fps: wave.fps, startS: evenS[0], valid: new Uint8Array(count).fill(1) }, intervalS];
}

/** σ² of one window with beats at its start and after each `intervalS`. */
function variance(wave: Waveform, intervalS: number): number {
  const hz = 1 / intervalS;
  const spec = spectrum(wave);
  const isBeside = (i: number): boolean => spec.inBand(i) && [1, 2, 3].every((k) => Math.abs(i * spec.stepHz - k * hz) > HARMONIC_HALF_WIDTH_HZ);
  const beside = spec.power.filter((_, i) => isBeside(i));
  const low = BAND[0] * hz;
  const high = Math.min(BAND[1] * hz, (0.95 * wave.fps) / 2);
  if (beside.length === 0 || low >= high) return Infinity;
  const level = median(beside) / Math.LN2; // mean noise power, robust against a missed peak
  const density = ((level / 2) * wave.values.length) / wave.fps / HANN_BANDWIDTH; // power is squared amplitude, twice the variance
  const slopeVariance = (density * (2 * Math.PI) ** 2 * (high ** 3 - low ** 3)) / 3;
  const x = bandpass(wave.values, wave.fps, low, high, 2);
  const beats = Math.ceil(wave.values.length / wave.fps / intervalS);
  const at = Array.from({ length: beats }, (_, i) => clip(rint(i * intervalS * wave.fps), 1, x.length - 2));
  const curvature = median(at.map((i) => 2 * x[i] - x[i - 1] - x[i + 1])) * wave.fps ** 2;
  return curvature > 0 ? slopeVariance / curvature ** 2 : Infinity;
}
