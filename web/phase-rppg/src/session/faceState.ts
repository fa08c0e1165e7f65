/** The buffers of one face: samples and waveform of the last ticks; a port of session/face_state.py. */

import { toBytes } from "../face/crop.js";
import { deviation } from "../methods/common.js";
import { any, median, sum } from "../signal/arrays.js";
import type { RgbTrace, Waveform } from "../types.js";
import { type Clock, History, type Step } from "./clock.js";
import type { SessionConfig } from "./config.js";
import { COLUMNS } from "./skinSampler.js";
import type { WindowContext, WindowSamples } from "./windowSamples.js";

// Columns of the history: skin sampler, background, and the waveform as weighted sum and weight.
const X = COLUMNS.indexOf("x");
const FACE_PX = COLUMNS.indexOf("face_px");
const CLIPPED = COLUMNS.indexOf("clipped");
const BACKGROUND = COLUMNS.length;
const WAVE = COLUMNS.length + 3;
const WEIGHT = COLUMNS.length + 4;
const WIDTH = COLUMNS.length + 5;
const NO_BACKGROUND = [-1, -1, -1];
const NO_CROP = new Float32Array(0);

/** The last ticks of one face on the uniform clock. */
export class FaceState {
  private readonly history: History;
  private previous: { readonly row: readonly number[]; readonly crop: Float32Array } | null = null; // of the previous frame
  private emitted: number; // `nextWave` has returned the ticks before this one

  constructor(readonly clock: Clock, firstTick: number, config: SessionConfig) {
    this.history = new History(WIDTH, config.keepTicks, firstTick);
    this.emitted = firstTick;
  }

  /** The oldest tick that is held. */
  get firstTick(): number {
    return this.history.start;
  }

  /** The tick after the newest one. */
  get stopTick(): number {
    return this.history.stop;
  }

  /** The crop of the last frame; null if the face was absent in it. */
  get lastCrop(): Uint8Array | null {
    return this.previous && toBytes(this.previous.crop);
  }

  /** Interpolate the sample of a frame to the ticks of `step` and return the crops of these ticks, if there is a crop. */
  append(step: Step, sample: readonly number[], background: readonly number[] | null, crop: Float32Array | null): Uint8Array[] {
    const now = { row: [...sample, ...(background ?? NO_BACKGROUND), 0, 0], crop: crop ?? NO_CROP };
    const before = this.previous ?? now;
    this.previous = now;
    for (const share of step.weights)
      this.history.append(now.row.map((value, i) => before.row[i] + share * (value - before.row[i])), step.seen);
    return crop ? step.weights.map((share) => toBytes(interpolate(before.crop, crop, share))) : [];
  }

  /** Append the ticks of a frame in which the face is absent. */
  appendAbsence(step: Step): void {
    for (let i = 0; i < step.weights.length; i++) this.history.append(new Float64Array(WIDTH), false);
    this.previous = null;
  }

  /** Mark the samples after `tS` as invalid, because the face was not there. */
  invalidateAfter(tS: number): void {
    this.history.invalidateAfter(Math.floor((tS - this.clock.originS) * this.clock.fps + 1e-6));
  }

  /** Return the samples of ticks first … stop−1; ticks that are not held are invalid. */
  samples(first: number, stop: number): WindowSamples {
    const { rows, seen } = this.history.window(first, stop);
    const { fps } = this.clock;
    const startS = this.clock.timeS(first);
    const endS = this.clock.timeS(stop);
    const skin: RgbTrace = { values: columns(rows, 0, 3), fps, startS, valid: seen };
    const hasBackground = seen.map((flag, i) => (flag && [0, 1, 2].every((c) => rows[i * WIDTH + BACKGROUND + c] >= 0) ? 1 : 0));
    const timing = this.clock.frameTiming(startS, endS);
    const ofSeen = (column: number): Float64Array => columns(rows, column, 1).filter((_, i) => seen[i]);
    return {
      skin,
      background: any(hasBackground) ? { values: columns(rows, BACKGROUND, 3), fps, startS, valid: hasBackground } : null,
      centre: columns(rows, X, 2),
      coverage: sum(seen) / seen.length,
      facePx: any(seen) ? median(ofSeen(FACE_PX)) : 0,
      clipped: any(seen) ? sum(ofSeen(CLIPPED)) / sum(seen) : 0,
      fps: timing.fps,
      maxGapS: timing.maxGapS,
      endS,
      wave: this.wave(first, stop),
    };
  }

  /**
   * Return the samples up to `reach` ticks around a window; null if the face was not seen there. They begin and end
   * where the face was seen, because a spectrum weights the middle of its input most.
   */
  context(first: number, stop: number, reach: number): WindowContext | null {
    const begin = first - reach;
    const { seen } = this.history.window(begin, stop + reach);
    const extraS = (sum(seen) - sum(seen.subarray(reach, seen.length - reach))) / this.clock.fps;
    if (extraS <= 0) return null;
    return { samples: this.samples(begin + seen.indexOf(1), begin + seen.lastIndexOf(1) + 1), extraS };
  }

  /** Add weighted values and their weights to the waveform, from tick `first` on. */
  addWave(first: number, weighted: ArrayLike<number>, weights: ArrayLike<number>): void {
    this.history.add(first, weighted, WAVE);
    this.history.add(first, weights, WEIGHT);
  }

  /** Add the waveform of one window, with unit variance and smooth ends. */
  overlapAdd(first: number, wave: Waveform): void {
    const count = wave.values.length;
    const spread = any(wave.valid) ? deviation(wave.values.filter((_, i) => wave.valid[i])) : 0;
    if (spread <= 0) return;
    const fade = Float64Array.from(wave.values, (_, i) => Math.sin((Math.PI * (i + 0.5)) / count) ** 2 + 1e-3);
    this.addWave(first, fade.map((f, i) => (f * wave.values[i]) / spread), fade);
  }

  /** Return the waveform of ticks first … stop−1 as far as it is known. */
  wave(first: number, stop: number): Waveform {
    const { rows, seen } = this.history.window(first, stop);
    const valid = seen.map((flag, i) => (flag && rows[i * WIDTH + WEIGHT] > 0 ? 1 : 0));
    const values = Float64Array.from(valid, (flag, i) => (flag ? rows[i * WIDTH + WAVE] / rows[i * WIDTH + WEIGHT] : 0));
    return { values, fps: this.clock.fps, startS: this.clock.timeS(first), valid };
  }

  /** Return the waveform before tick `stop` that was not returned yet; null if there is none. */
  nextWave(stop: number): Waveform | null {
    const first = Math.max(this.emitted, this.firstTick);
    const last = Math.min(stop, this.stopTick);
    if (last <= first) return null;
    this.emitted = last;
    return this.wave(first, last);
  }
}

/** Linear interpolation between two crops. */
function interpolate(before: Float32Array, now: Float32Array, share: number): Float32Array {
  const out = new Float32Array(now.length);
  for (let i = 0; i < out.length; i++) out[i] = before[i] + share * (now[i] - before[i]);
  return out;
}

/** Columns from … from+count−1 of rows (T,WIDTH) as (T,count). */
function columns(rows: Float64Array, from: number, count: number): Float64Array {
  const out = new Float64Array((rows.length / WIDTH) * count);
  for (let i = 0; i < out.length; i++) out[i] = rows[Math.floor(i / count) * WIDTH + from + (i % count)];
  return out;
}
