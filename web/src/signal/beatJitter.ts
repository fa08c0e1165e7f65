/** How exactly beats can be timed in a noisy wave: σ = √(∫ S (2πf)² df) / |x″|; the twin of signal/beat_jitter.py. */

import type { Waveform } from "../types";
import { all, clip, median, rint } from "./arrays";
import { bandpass } from "./filters";
import { spectrum } from "./rate";

const WINDOW_S = 10;
const LEAST_BEATS = 4; // of a window, to know its rate
const LINE_HZ = 0.35; // on both sides of a line: breathing widens it, and that is no noise
const HANN_WIDTH = 1.5; // noise bandwidth of the Hann window, in 1 / its length
const BAND = [0.6, 2.3] as const; // in heart rates: where `findBeats` looks

/** The standard deviation of the times of beats that the noise of their wave explains; infinite when it cannot be known. */
export function beatJitterS(wave: Waveform, beatsS: readonly number[]): number {
  const size = rint(WINDOW_S * wave.fps);
  const found: number[] = [];
  for (let first = 0; first + size <= wave.values.length; first += size) {
    const startS = wave.startS + first / wave.fps;
    const inside = beatsS.filter((t) => t >= startS && t < startS + WINDOW_S);
    const valid = wave.valid.subarray(first, first + size);
    if (inside.length < LEAST_BEATS || !all(valid)) continue;
    found.push(variance({ values: wave.values.subarray(first, first + size), fps: wave.fps, startS, valid }, inside));
  }
  return found.length > 0 ? Math.sqrt(median(found)) : Infinity;
}

/** σ² within one window. */
function variance(wave: Waveform, beatsS: readonly number[]): number {
  const hz = 1 / median(beatsS.slice(1).map((t, i) => t - beatsS[i]));
  const spec = spectrum(wave);
  const isBeside = (i: number): boolean => spec.inBand(i) && [1, 2, 3].every((k) => Math.abs(i * spec.stepHz - k * hz) > LINE_HZ);
  const beside = spec.power.filter((_, i) => isBeside(i));
  const low = BAND[0] * hz;
  const high = Math.min(BAND[1] * hz, (0.95 * wave.fps) / 2);
  if (beside.length === 0 || low >= high) return Infinity;
  const level = median(beside) / Math.LN2; // mean power of noise, unmoved by a line that was missed
  const density = ((level / 2) * wave.values.length) / wave.fps / HANN_WIDTH; // power is squared amplitude: twice the variance
  const slopeVariance = (density * (2 * Math.PI) ** 2 * (high ** 3 - low ** 3)) / 3;
  const x = bandpass(wave.values, wave.fps, low, high, 2);
  const at = beatsS.map((t) => clip(rint((t - wave.startS) * wave.fps), 1, x.length - 2));
  const bend = median(at.map((i) => 2 * x[i] - x[i - 1] - x[i + 1])) * wave.fps ** 2;
  return bend > 0 ? slopeVariance / bend ** 2 : Infinity;
}
