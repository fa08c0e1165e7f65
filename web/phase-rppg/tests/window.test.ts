import { describe, expect, it } from "vitest";
import * as chrom from "../src/methods/chrom.js";
import * as pos from "../src/methods/pos.js";
import { assess, type Window } from "../src/session/windowQuality.js";
import type { WindowSamples } from "../src/session/windowSamples.js";
import { read } from "../src/session/calibration.js";
import { gate } from "../src/session/gate.js";
import { removeMotion } from "../src/signal/motionRemoval.js";
import { pulsation } from "../src/signal/quality.js";
import { isEstimate, type Reading } from "../src/types.js";
import { expectClose, expectNear, flags, floats, suite, tolerance } from "./conformance.js";

describe("The conformance suite:", () => {
  it.each(Object.keys(suite.windows))("window %s", (name) => {
    const g = suite.windows[name];
    const clock = { fps: 30, startS: 3, valid: flags(g.valid) };
    const skin = { values: floats(g.skin), ...clock };
    const wave = pos.extract(skin);
    expectClose(wave.values, g.pos, tolerance("windows", "wave"));
    expectClose(chrom.extract(skin).values, g.chrom, tolerance("windows", "wave"));
    expectClose(removeMotion(wave, floats(g.centre)).values, g.remove_motion, tolerance("windows", "wave"));
    expectNear([pulsation(skin, 75)], [g.pulsation], tolerance("windows", "quality"));
    const endS = 3 + wave.values.length / 30;
    const samples: WindowSamples = {
      skin, coverage: 0.95, facePx: 80, clipped: 0.01, fps: 29.5, maxGapS: 0.1, endS, wave: null,
      background: g.background && { values: floats(g.background), ...clock }, centre: floats(g.centre),
    };
    const window: Window = { samples, wave, method: g.method };
    const tracked = g.tracked && { bpm: g.tracked.bpm, support: g.tracked.support, sigmaBpm: g.tracked.sigma_bpm };
    const { peak, quality } = assess(window, tracked);
    expect(peak === null).toBe(g.peak === null);
    for (const [name, value] of Object.entries(g.quality))
      expectNear([quality[name as keyof typeof quality]], [value as number], tolerance("windows", "quality"), name);
    const calibration = read(g.calibration, "the suite");
    expectReading(gate(peak, quality, 3, endS, calibration), g.reading);
    expectReading(gate(peak, quality, 3, endS, calibration, false), g.ungated);
    const confidentS = endS - calibration.thresholds.memory_s;
    expectReading(gate(peak, quality, 3, endS, calibration, true, confidentS), g.alive);
    expectReading(gate(peak, quality, 3, endS, calibration, true, confidentS - 0.1), g.forgotten);
  });
});

function expectReading(got: Reading, want: Record<string, any>): void {
  expectNear([got.pOk], [want.p_ok], tolerance("windows", "p_ok"));
  expectNear([got.pAlive ?? NaN], [want.p_alive], tolerance("windows", "p_ok"));
  if (!isEstimate(got)) return expect(got.reason).toBe(want.reason);
  for (const name of ["bpm", "low", "high"] as const) expectNear([got[name]], [want[name]], tolerance("windows", "bpm"));
}

describe("a calibration file", () => {
  it.each([null, {}, { thresholds: { ok: "high" } }, []])("that is none is refused: %j", (data) => {
    expect(() => read(data, "gate.json")).toThrow("gate.json");
  });
});
