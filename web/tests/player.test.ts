import { describe, expect, it } from "vitest";
import { Pacer } from "../src/capture/player";

/** A display that shows every frame only up to a certain speed; returns the times that were taken. */
function play(times: readonly number[], fastest: number): { taken: number[]; shown: number } {
  const pacer = new Pacer();
  const taken: number[] = [];
  let shown = 0;
  for (let i = 0; i < times.length; shown++) {
    if (shown > 50 * times.length) throw new Error("it never ends");
    const { take, rate, backTo } = pacer.see(times[i]);
    if (take) taken.push(times[i]);
    if (backTo !== null) i = times.findIndex((t) => t > backTo);
    else i += Math.max(1, Math.round(rate / fastest)); // too fast: frames are left out
  }
  return { taken, shown };
}

const even = Array.from({ length: 900 }, (_, i) => i / 30);

describe("a file", () => {
  it("is seen frame by frame on a fast computer", () => expect(play(even, 2).taken).toEqual(even));

  it("is seen for the most part on a slow one, because it plays slower", () => {
    expect(play(even, 0.5).taken.length).toBeGreaterThan(0.65 * even.length);
  });

  it("with a true pause goes on after it", () => {
    const paused = even.map((t) => (t > 5 ? t + 1 : t));
    expect(play(paused, 2).taken).toEqual(paused);
  });

  it("whose frames come irregularly is not played for ever", () => {
    const irregular = even.map((t, i) => t + 0.012 * ((i * 7) % 3));
    expect(play(irregular, 2).shown).toBeLessThan(1.5 * irregular.length);
  });

  it("shown twice at one time is taken once", () => {
    const pacer = new Pacer();
    expect(pacer.see(1).take).toBe(true);
    expect(pacer.see(1).take).toBe(false);
    expect(pacer.see(0.5).take).toBe(false);
  });
});
