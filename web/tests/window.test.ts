import { describe, expect, it } from "vitest";
import * as chrom from "../src/methods/chrom";
import * as pos from "../src/methods/pos";
import { assess, type Window } from "../src/session/windowQuality";
import { read } from "../src/session/calibration";
import { gate } from "../src/session/gate";
import { withoutMotion } from "../src/signal/motionRemoval";
import { pulsation } from "../src/signal/quality";
import { isEstimate, type Reading } from "../src/types";
import { expectClose, flags, floats, goldens } from "./goldens";

describe("Python and the page agree on", () => {
  it.each(Object.keys(goldens.windows))("window %s", (name) => {
    const g = goldens.windows[name];
    const clock = { fps: 30, startS: 3, valid: flags(g.valid) };
    const skin = { values: floats(g.skin), ...clock };
    const wave = pos.extract(skin);
    expectClose(wave.values, g.pos, 1e-7);
    expectClose(chrom.extract(skin).values, g.chrom, 1e-7);
    expectClose(withoutMotion(wave, floats(g.centre)).values, g.without_motion, 1e-7);
    expect(pulsation(skin, 75)).toBeCloseTo(g.pulsation, 10);
    const window: Window = {
      wave, skin, method: g.method, coverage: 0.95, facePx: 80, clipped: 0.01, fps: 29.5, maxGapS: 0.1,
      background: g.background && { values: floats(g.background), ...clock }, centre: floats(g.centre),
    };
    const tracked = g.tracked && { bpm: g.tracked.bpm, support: g.tracked.support, sigmaBpm: g.tracked.sigma_bpm };
    const { peak, quality } = assess(window, tracked);
    expect(peak === null).toBe(g.peak === null);
    for (const [name, value] of Object.entries(g.quality))
      expect(quality[name as keyof typeof quality], name).toBeCloseTo(value as number, 6);
    const calibration = read(g.calibration, "goldens");
    const endS = 3 + wave.values.length / 30;
    expectReading(gate(peak, quality, 3, endS, calibration), g.reading);
    expectReading(gate(peak, quality, 3, endS, calibration, false), g.ungated);
    const sureS = endS - calibration.memory_s;
    expectReading(gate(peak, quality, 3, endS, calibration, true, sureS), g.alive);
    expectReading(gate(peak, quality, 3, endS, calibration, true, sureS - 0.1), g.forgotten);
  });
});

function expectReading(got: Reading, want: Record<string, any>): void {
  expect(got.pOk).toBeCloseTo(want.p_ok, 6);
  if (!isEstimate(got)) return expect(got.reason).toBe(want.reason);
  for (const name of ["bpm", "low", "high"] as const) expect(got[name]).toBeCloseTo(want[name], 5);
}

describe("a calibration file", () => {
  it.each([null, {}, { threshold: "high" }, []])("that is none is refused: %j", (data) => {
    expect(() => read(data, "gate.json")).toThrow("gate.json");
  });
});
