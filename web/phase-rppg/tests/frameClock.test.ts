import { describe, expect, it } from "vitest";
import { FrameClock, type FrameTimes } from "../src/capture/frameClock.js";

const times = Array.from({ length: 90 }, (_, i) => 0.034 * i);
const run = (clock: FrameClock, of: (tS: number, i: number) => FrameTimes): number[] => times.map((tS, i) => clock.update(of(tS, i)));
const increasing = (values: readonly number[]): boolean => values.every((value, i) => i === 0 || value > values[i - 1]);
const errors = (values: readonly number[]): number => {
  const offsets = values.map((value, i) => value - times[i]);
  return Math.max(...offsets) - Math.min(...offsets);
};

describe("the clock of a camera", () => {
  it("ignores frame timestamps in whole seconds, as in Firefox", () => {
    const got = run(new FrameClock(true), (tS) => ({ mediaS: tS, frameS: Math.floor(tS), nowS: 50 + tS }));
    expect(got).toEqual(times);
  });

  it("uses exact frame timestamps when the announced time is late", () => {
    const got = run(new FrameClock(true), (tS, i) => ({ mediaS: i % 5 === 4 ? times[i - 1] : tS, frameS: 7 + tS, nowS: 50 + tS }));
    expect(errors(got.slice(10))).toBeLessThan(1e-9);
  });

  it("falls back to the monotonic time when mediaTime stands still", () => {
    const got = run(new FrameClock(true), (tS) => ({ mediaS: 0, frameS: null, nowS: 50 + tS })).slice(8);
    expect(increasing(got)).toBe(true);
    expect(got[got.length - 1] - got[0]).toBeCloseTo(times[89] - times[8], 6);
  });

  it("falls back to the monotonic time when mediaTime runs at another rate", () => {
    const got = run(new FrameClock(true), (tS) => ({ mediaS: 1000 * tS, frameS: null, nowS: 50 + tS })).slice(8);
    expect(got[got.length - 1] - got[0]).toBeCloseTo(times[89] - times[8], 6);
  });
});

describe("the mediaTime of a camera", () => {
  const jitter = (i: number): number => 0.01 * Math.sin(7 * i);
  const drawn = (tS: number, i: number, mediaS: number): FrameTimes => ({ mediaS, frameS: Math.floor(tS), nowS: 50 + tS + jitter(i) });

  it("is not used for a single frame from the future, as in Firefox", () => {
    const got = run(new FrameClock(true), (tS, i) => drawn(tS, i, i % 20 === 19 ? tS + 0.33 : tS));
    expect(increasing(got)).toBe(true);
    expect(errors(got)).toBeLessThan(0.03);
  });

  it("is exact for the frames after a stall", () => {
    const got = run(new FrameClock(true), (tS, i) => ({ mediaS: tS, frameS: null, nowS: 50 + tS + (i === 40 ? 0.6 : 0) }));
    expect(got).toEqual(times);
  });

  it("is used again soon after a jump that lasts", () => {
    const got = run(new FrameClock(true), (tS, i) => drawn(tS, i, i < 30 ? tS : tS + 5));
    expect(got.slice(40)).toEqual(times.slice(40).map((tS) => tS + 5));
  });
});

describe("the clock of a file", () => {
  it("is independent of the playback rate", () => {
    const got = run(new FrameClock(false), (tS) => ({ mediaS: tS, frameS: tS, nowS: 4 * tS }));
    expect(errors(got)).toBeLessThan(1e-9);
  });
});
