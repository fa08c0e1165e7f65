/** From irregular frames onto one uniform clock, frame by frame, with a bounded memory; the twin of session/clock.py. */

import { clip } from "../signal/arrays";

const MAX_GAP_S = 0.5;
const SLACK = 1e-6; // of one tick: a timestamp that rounding moved still counts

/** The ticks between the frame before and this one. */
export interface Step {
  readonly first: number; // number of the first tick
  readonly shares: readonly number[]; // where each tick lies between the two frames, 0–1
  readonly seen: boolean; // false: the pause was too long to blend across
}

/** Counts ticks and remembers the frame times of the last window. */
export class Clock {
  originS = NaN;
  lastS = NaN;
  count = 0; // ticks so far
  private frameTimes: number[] = [];

  constructor(readonly fps: number, private readonly memoryS: number) {}

  timeS(tick: number): number {
    return this.originS + tick / this.fps;
  }

  /** Take the time of the next frame, which must be later than the last one. */
  advance(tS: number): Step {
    if (Number.isNaN(this.originS)) {
      this.originS = this.lastS = tS;
      this.count = 1;
      this.frameTimes.push(tS);
      return { first: 0, shares: [1], seen: true };
    }
    const first = this.count;
    const beforeS = this.lastS;
    const gapS = tS - beforeS;
    const stop = Math.floor((tS - this.originS) * this.fps + SLACK) + 1;
    const shares: number[] = [];
    for (let tick = first; tick < stop; tick++) shares.push(clip((this.timeS(tick) - beforeS) / gapS, 0, 1));
    this.lastS = tS;
    this.count = Math.max(stop, first);
    this.frameTimes.push(tS);
    while (tS - this.frameTimes[0] > this.memoryS) this.frameTimes.shift();
    return { first, shares, seen: gapS <= MAX_GAP_S + 1e-9 };
  }

  /** True frames per second and longest pause in s between two times; pauses at the ends count. */
  pace(startS: number, endS: number): { fps: number; maxGapS: number } {
    const times = this.frameTimes.filter((t) => t >= startS - SLACK && t <= endS + SLACK);
    if (times.length < 2) return { fps: 0, maxGapS: endS - startS };
    const last = times[times.length - 1];
    const all = [startS, ...times, Math.max(endS - 1 / this.fps, last)];
    const gaps = all.slice(1).map((t, i) => t - all[i]);
    return { fps: (times.length - 1) / (last - times[0]), maxGapS: Math.max(...gaps) };
  }
}

/** The last ticks of some columns of numbers; older ones are forgotten. */
export class History {
  start: number; // ticks held: start ≤ tick < stop
  stop: number;
  private readonly rows: Float64Array;
  private readonly seen: Uint8Array;
  private fill = 0;

  constructor(private readonly columns: number, private readonly keep: number, first: number) {
    this.start = this.stop = first;
    this.rows = new Float64Array(2 * keep * columns);
    this.seen = new Uint8Array(2 * keep);
  }

  /** Add the row of the next tick. */
  append(row: ArrayLike<number>, seen: boolean): void {
    if (this.fill === 2 * this.keep) {
      this.rows.copyWithin(0, this.keep * this.columns);
      this.seen.copyWithin(0, this.keep);
      this.fill = this.keep;
    }
    this.rows.set(row, this.fill * this.columns);
    this.seen[this.fill++] = seen ? 1 : 0;
    this.stop += 1;
    this.start = Math.max(this.start, this.stop - this.keep);
  }

  /** Rows (n,C) and what was seen (n,) for ticks first … stop−1; ticks that are not held were not seen. */
  window(first: number, stop: number): { rows: Float64Array; seen: Uint8Array } {
    const rows = new Float64Array((stop - first) * this.columns);
    const seen = new Uint8Array(stop - first);
    const low = Math.max(first, this.start);
    const high = Math.min(stop, this.stop);
    if (low < high) {
      const at = this.fill - this.stop;
      rows.set(this.rows.subarray((low + at) * this.columns, (high + at) * this.columns), (low - first) * this.columns);
      seen.set(this.seen.subarray(low + at, high + at), low - first);
    }
    return { rows, seen };
  }

  /** Mark ticks later than `tick` as not seen: the face had gone, as we know now. */
  forgetAfter(tick: number): void {
    this.seen.fill(0, Math.max(tick + 1, this.start) + this.fill - this.stop, this.fill);
  }

  /** Add values to a column, for the ticks from `first` that are held. */
  add(first: number, values: ArrayLike<number>, column: number): void {
    const at = this.fill - this.stop;
    const high = Math.min(first + values.length, this.stop);
    for (let tick = Math.max(first, this.start); tick < high; tick++)
      this.rows[(tick + at) * this.columns + column] += values[tick - first];
  }
}
