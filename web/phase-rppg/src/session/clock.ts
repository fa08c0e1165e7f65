/** Resampling of frames to a uniform clock in bounded memory; a port of session/clock.py. */

import { constants } from "../data.js";
import { clip } from "../signal/arrays.js";

const { max_gap_s: MAX_GAP_S, clock_tolerance: SLACK } = constants; // tolerance for rounding, in ticks

/** The ticks between the previous frame and this one. */
export interface Step {
  readonly first: number; // index of the first tick
  readonly weights: readonly number[]; // position of each tick between the two frames, 0–1
  readonly seen: boolean; // false if the gap is too long to interpolate
}

/** Counts ticks and keeps the frame times of the last window. */
export class Clock {
  originS = NaN;
  lastS = NaN;
  count = 0; // ticks so far
  private frameTimes: number[] = [];

  constructor(readonly fps: number, private readonly memoryS: number) {}

  timeS(tick: number): number {
    return this.originS + tick / this.fps;
  }

  /** Advance to the time of the next frame, which must be later than the last one. */
  advance(tS: number): Step {
    if (Number.isNaN(this.originS)) {
      this.originS = this.lastS = tS;
      this.count = 1;
      this.frameTimes.push(tS);
      return { first: 0, weights: [1], seen: true };
    }
    const first = this.count;
    const beforeS = this.lastS;
    const gapS = tS - beforeS;
    const stop = Math.floor((tS - this.originS) * this.fps + SLACK) + 1;
    const weights: number[] = [];
    for (let tick = first; tick < stop; tick++) weights.push(clip((this.timeS(tick) - beforeS) / gapS, 0, 1));
    this.lastS = tS;
    this.count = Math.max(stop, first);
    this.frameTimes.push(tS);
    while (tS - this.frameTimes[0] > this.memoryS) this.frameTimes.shift();
    return { first, weights, seen: gapS <= MAX_GAP_S + 1e-9 };
  }

  /** Return the true frame rate and the longest gap between two times, including gaps at both ends. */
  frameTiming(startS: number, endS: number): { fps: number; maxGapS: number } {
    const times = this.frameTimes.filter((t) => t >= startS - SLACK && t <= endS + SLACK);
    if (times.length < 2) return { fps: 0, maxGapS: endS - startS };
    const last = times[times.length - 1];
    const all = [startS, ...times, Math.max(endS - 1 / this.fps, last)];
    const gaps = all.slice(1).map((t, i) => t - all[i]);
    return { fps: (times.length - 1) / (last - times[0]), maxGapS: Math.max(...gaps) };
  }
}

/** A ring buffer of rows, one per tick. */
export class History {
  start: number; // ticks held: start ≤ tick < stop
  stop: number;
  private readonly rows: Float64Array;
  private readonly valid: Uint8Array;
  private fill = 0;

  constructor(private readonly columns: number, private readonly keep: number, first: number) {
    this.start = this.stop = first;
    this.rows = new Float64Array(2 * keep * columns);
    this.valid = new Uint8Array(2 * keep);
  }

  /** Add the row of the next tick. */
  append(row: ArrayLike<number>, seen: boolean): void {
    if (this.fill === 2 * this.keep) {
      this.rows.copyWithin(0, this.keep * this.columns);
      this.valid.copyWithin(0, this.keep);
      this.fill = this.keep;
    }
    this.rows.set(row, this.fill * this.columns);
    this.valid[this.fill++] = seen ? 1 : 0;
    this.stop += 1;
    this.start = Math.max(this.start, this.stop - this.keep);
  }

  /** Return rows (n,C) and flags (n,) for ticks first … stop−1; ticks outside the buffer are not seen. */
  window(first: number, stop: number): { rows: Float64Array; seen: Uint8Array } {
    const rows = new Float64Array((stop - first) * this.columns);
    const seen = new Uint8Array(stop - first);
    const low = Math.max(first, this.start);
    const high = Math.min(stop, this.stop);
    if (low < high) {
      const at = this.fill - this.stop;
      rows.set(this.rows.subarray((low + at) * this.columns, (high + at) * this.columns), (low - first) * this.columns);
      seen.set(this.valid.subarray(low + at, high + at), low - first);
    }
    return { rows, seen };
  }

  /** Mark ticks later than `tick` as not seen, because the face had left. */
  invalidateAfter(tick: number): void {
    this.valid.fill(0, Math.max(tick + 1, this.start) + this.fill - this.stop, this.fill);
  }

  /** Add values to a column, from tick `first` on, within the buffer. */
  add(first: number, values: ArrayLike<number>, column: number): void {
    const at = this.fill - this.stop;
    const high = Math.min(first + values.length, this.stop);
    for (let tick = Math.max(first, this.start); tick < high; tick++)
      this.rows[(tick + at) * this.columns + column] += values[tick - first];
  }
}
