/** The rhythm of a window: mean rate, spread and likeness of its beats; a port of signal/rhythm.py. */

import { reference } from "../data.js";
import type { Waveform } from "../types.js";
import { median, sum } from "./arrays.js";
import { bandpass } from "./filters.js";
import { findBeats } from "./rate.js";
import { interpolateInvalid } from "./resample.js";

const MIN_BEATS = reference.rhythm.MIN_BEATS; // fewer beats have no spread
const BAND = reference.rhythm.BAND; // pass band of the beat detector in heart rates: wide, because the intervals differ
const SHORTEST = reference.rhythm.SHORTEST; // shortest interval between two beats, in mean intervals
const PASSES = reference.rhythm.PASSES; // the second pass uses the mean rate of the beats of the first one
const REACH = reference.rhythm.REACH; // half length of a beat that is compared, in mean intervals

/** The beats of one window. */
export interface Rhythm {
  readonly bpm: number; // mean rate between the first and the last beat
  readonly spread: number; // standard deviation of the intervals over their mean
  readonly match: number; // −1 to 1: median correlation of a beat with the median beat
}

/** Return the rhythm of the beats, searched near a rate; null if there are too few beats. */
export function rhythm(wave: Waveform, bpm: number): Rhythm | null {
  let beatsS: number[] = [];
  let searchedBpm = bpm;
  let nearBpm = bpm;
  for (let pass = 0; pass < PASSES; pass++) {
    const foundS = findBeats(wave, nearBpm, BAND, SHORTEST);
    if (foundS.length < MIN_BEATS) break;
    [beatsS, searchedBpm] = [foundS, nearBpm];
    nearBpm = 60 / mean(intervals(beatsS));
  }
  if (beatsS.length < MIN_BEATS) return null;
  const found = intervals(beatsS);
  const meanS = mean(found);
  const spread = Math.sqrt(mean(found.map((interval) => (interval - meanS) ** 2))) / meanS;
  return { bpm: 60 / meanS, spread, match: matchOf(wave, beatsS, searchedBpm / 60, meanS) };
}

const intervals = (beatsS: readonly number[]): number[] => beatsS.slice(1).map((t, i) => t - beatsS[i]);
const mean = (values: readonly number[]): number => sum(values) / values.length;

/** Return the median correlation of the beats with their median; 0 if too few beats are complete. */
function matchOf(wave: Waveform, beatsS: readonly number[], searchedHz: number, meanS: number): number {
  const highHz = Math.min(BAND[1] * searchedHz, (0.95 * wave.fps) / 2);
  const x = bandpass(interpolateInvalid(wave.values, wave.valid), wave.fps, BAND[0] * searchedHz, highHz, 2);
  const reach = Math.floor(REACH * meanS * wave.fps);
  const at = beatsS.map((t) => roundHalfToEven((t - wave.startS) * wave.fps)).filter((i) => i >= reach && i + reach < x.length);
  if (at.length < MIN_BEATS - 2) return 0;
  const beats = at.map((i) => {
    const beat = Array.from(x.subarray(i - reach, i + reach + 1));
    const level = mean(beat);
    return beat.map((value) => value - level);
  });
  const middle = beats[0].map((_, k) => median(beats.map((beat) => beat[k])));
  const product = (a: readonly number[], b: readonly number[]): number => sum(a.map((value, k) => value * b[k]));
  const size = Math.sqrt(product(middle, middle));
  return median(beats.map((beat) => product(beat, middle) / Math.max(Math.sqrt(product(beat, beat)) * size, 1e-300)));
}

/** Round as numpy does. */
function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
