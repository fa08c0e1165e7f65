import { describe, expect, it } from "vitest";
import { Pacer } from "../src/capture/player";

/** A display that shows every frame only below a certain speed. */
function play(times: readonly number[], fastest: number): { taken: number[]; shown: number } {
  const pacer = new Pacer();
  const taken: number[] = [];
  let at = 0;
  let rate = 0.25;
  let shown = 0;
  for (let i = 0; i < times.length; shown++) {
    if (shown > 50 * times.length) throw new Error("it never ends");
    const verdict = pacer.see(times[i]);
    if (verdict.take) taken.push(times[i]);
    rate = verdict.rate;
    if (verdict.backTo !== null) {
      at = times.findIndex((t) => t >= verdict.backTo! - 1e-9 - 0.017);
      i = times[at] <= taken[taken.length - 1] ? at + 1 : at;
    } else i += Math.max(1, Math.round(rate / fastest)); // too fast: frames are left out
  }
  return { taken, shown };
}

const even = Array.from({ length: 300 }, (_, i) => i / 30);

describe("a file", () => {
  it("is seen frame by frame on a fast computer", () => expect(play(even, 2).taken).toEqual(even));

  it("is seen almost frame by frame on a slow one, because it plays slower", () => {
    expect(play(even, 0.3).taken.length).toBeGreaterThan(280);
  });

  it("with a true pause goes on after it", () => {
    const paused = even.map((t) => (t > 5 ? t + 1 : t));
    expect(play(paused, 2).taken).toEqual(paused);
  });

  it("whose frames come irregularly is not played for ever", () => {
    const irregular = even.map((t, i) => t + 0.012 * ((i * 7) % 3));
    expect(play(irregular, 2).shown).toBeLessThan(3 * irregular.length);
  });

  it("shown twice at one time is taken once", () => {
    const pacer = new Pacer();
    expect(pacer.see(1).take).toBe(true);
    expect(pacer.see(1).take).toBe(false);
    expect(pacer.see(0.5).take).toBe(false);
  });
});
