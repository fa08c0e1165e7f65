import { describe, expect, it } from "vitest";
import type { Calibration } from "../src/session/calibration.js";
import { inHindsight } from "../src/session/gate.js";
import type { WindowResult } from "../src/session/results.js";
import { isEstimate } from "../src/types.js";

const calibration = {
  thresholds: { ok: 0.7, alive: 0.9, kept_alive: 0.5, memory_s: 5 }, interval: { floor_bpm: 2, scales: { sigma_bpm: 1 } },
} as unknown as Calibration;
const peak = { bpm: 70, power: 0.5, snrDb: 3, sigmaBpm: 1 };
const window = (endS: number, pAlive: number, pOk = 0.8): WindowResult => ({
  kind: "window", face: 0, startS: endS - 2, endS, peak, quality: {} as WindowResult["quality"], spectrum: [],
  reading: pAlive >= 0.9 && pOk >= 0.7
    ? { bpm: 70, low: 67, high: 73, pOk, pAlive, startS: endS - 2, endS } : { reason: "NO_PULSE", pOk, pAlive, startS: endS - 2, endS },
});
const shown = (windows: WindowResult[], lostS: number[] = []): boolean[] => inHindsight(windows, calibration, lostS).map(({ reading }) => isEstimate(reading));

describe("a later confident window", () => {
  it("confirms windows within its memory", () => {
    expect(shown([window(4, 0.6), window(5, 0.6), window(6, 0.4), window(10, 0.95)])).toEqual([false, true, false, true]);
  });

  it("confirms no window whose number is doubtful", () => {
    expect(shown([window(8, 0.6, 0.6), window(9, 0.6), window(10, 0.95)])).toEqual([false, true, true]);
    expect(shown([window(9, 0.6), window(10, 0.95, 0.6)])).toEqual([false, false]);
  });

  it("confirms none from before the face was lost", () => {
    expect(shown([window(5, 0.6), window(8, 0.6), window(10, 0.95)], [5.5])).toEqual([false, true, true]);
  });

  it("confirms none in which the face was lost", () => {
    expect(shown([window(6, 0.6), window(8, 0.95)], [5])).toEqual([false, true]);
  });
});
