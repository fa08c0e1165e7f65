import { describe, expect, it } from "vitest";
import { Pacer } from "../src/capture/player.js";

/** A display that shows every frame only up to a certain speed; returns the times that were taken. */
function play(times: readonly number[], fastest: number): { taken: number[]; shown: number } {
  const pacer = new Pacer();
  const taken: number[] = [];
  let shown = 0;
  for (let i = 0; i < times.length; shown++) {
    if (shown > 50 * times.length) throw new Error("it never ends");
    const { take, rate, seekToS } = pacer.update(times[i]);
    if (take) taken.push(times[i]);
    if (seekToS !== null) i = times.findIndex((t) => t > seekToS);
    else i += Math.max(1, Math.round(rate / fastest)); // too fast: frames are skipped
  }
  return { taken, shown };
}

const even = Array.from({ length: 900 }, (_, i) => i / 30);

describe("a file", () => {
  it("loses no frame on a fast computer", () => expect(play(even, 2).taken).toEqual(even));

  it("plays slower on a slow computer and loses few frames", () => {
    expect(play(even, 0.5).taken.length).toBeGreaterThan(0.65 * even.length);
  });

  it("with a real gap continues after it", () => {
    const paused = even.map((t) => (t > 5 ? t + 1 : t));
    expect(play(paused, 2).taken).toEqual(paused);
  });

  it("with irregular frames ends", () => {
    const irregular = even.map((t, i) => t + 0.012 * ((i * 7) % 3));
    expect(play(irregular, 2).shown).toBeLessThan(1.5 * irregular.length);
  });

  it("with a repeated timestamp gives that frame once", () => {
    const pacer = new Pacer();
    expect(pacer.update(1).take).toBe(true);
    expect(pacer.update(1).take).toBe(false);
    expect(pacer.update(0.5).take).toBe(false);
  });
});
