import { describe, expect, it } from "vitest";
import { fft, irfft, rfft } from "../src/signal/fft.js";
import { bandpass, fastLength, removeLinearTrend } from "../src/signal/filters.js";
import { hrv } from "../src/signal/hrv.js";
import { beatJitterS } from "../src/signal/beatJitter.js";
import { refineBeats } from "../src/signal/beatTiming.js";
import { beatBpm, findBeats, jointBpm, type Peak, spectralPeak, spectrum } from "../src/signal/rate.js";
import { interpolateInvalid, toUniform } from "../src/signal/resample.js";
import { rhythm } from "../src/signal/rhythm.js";
import { RateTracker, type TrackedRate } from "../src/signal/rateTracking.js";
import { expectClose, flags, floats, suite, tolerance, expectNear } from "./conformance.js";

describe("the Fourier transform", () => {
  it.each([2, 6, 15, 40, 3840])("of length %i is the sum that defines it, and comes back", (size) => {
    const re = Float64Array.from({ length: size }, (_, i) => Math.sin(3 * i) + (i % 7));
    const whole = fft({ re, im: new Float64Array(size) });
    for (const k of [0, 1, size >> 1, size - 1]) {
      let real = 0;
      let imaginary = 0;
      re.forEach((value, i) => {
        real += value * Math.cos((2 * Math.PI * ((i * k) % size)) / size);
        imaginary -= value * Math.sin((2 * Math.PI * ((i * k) % size)) / size);
      });
      expect(Math.hypot(whole.re[k] - real, whole.im[k] - imaginary)).toBeLessThan(1e-8 * size);
    }
    expectClose(irfft(rfft(re, size), size), re);
  });

  it("refuses unsupported lengths", () => {
    expect(() => fft({ re: new Float64Array(7), im: new Float64Array(7) })).toThrow(/length 7/);
  });
});

describe("The conformance suite:", () => {
  it("filters", () => {
    const { values, bandpass: passed, line, lengths } = suite.filters;
    expectClose(bandpass(floats(values), 30, 0.7, 4), floats(passed), tolerance("filters", "values"));
    expectClose(removeLinearTrend(floats(values)), floats(line), tolerance("filters", "values"));
    for (const [count, length] of lengths) expect(fastLength(count)).toBe(length);
  });

  it("the uniform clock", () => {
    const g = suite.resample;
    const got = toUniform(floats(g.t_s), floats(g.values), 3, 30, flags(g.valid));
    expectClose(got.values, floats(g.out), tolerance("resample", "values"));
    expect([...got.valid]).toEqual(g.seen);
    expectNear([got.startS], [g.start_s], tolerance("resample", "values"));
    expectClose(interpolateInvalid(got.values, got.valid, 3), floats(g.bridged), tolerance("resample", "values"));
  });

  const expectPeak = (got: Peak | null, want: Record<string, number> | null): void => {
    if (want === null) return expect(got).toBeNull();
    expectNear([got!.bpm], [want.bpm], tolerance("rate", "bpm"));
    expectNear([got!.power], [want.power], tolerance("rate", "power"));
    expectNear([got!.snrDb], [want.snr_db], tolerance("rate", "snr_db"));
    expectNear([got!.sigmaBpm], [want.sigma_bpm], tolerance("rate", "sigma_bpm"));
  };

  it.each(Object.keys(suite.rate))("rate %s", (name) => {
    const g = suite.rate[name];
    const wave = { values: floats(g.values), fps: g.fps, valid: flags(g.valid), startS: 2.5 };
    const spec = spectrum(wave);
    expectNear([spec.stepHz, spec.durationS], [g.step_hz, g.duration_s], 1e-9);
    expectClose(spec.power.filter((_power, i) => i % 50 === 0), g.power, tolerance("rate", "power"));
    expectPeak(spectralPeak(wave), g.peak);
    expectPeak(spectralPeak(wave, 80), g.near_80);
    expectClose(findBeats(wave, 75), g.beats, tolerance("rate", "beats_s"));
    expectClose(findBeats(wave), g.beats_own, tolerance("rate", "beats_s"));
    expectNear([beatBpm(g.beats) ?? 0], [g.beat_bpm ?? 0], tolerance("rate", "bpm"));
  });

  it("the rate over time", () => {
    const { signals, times_s: timesS, causal } = suite.track;
    const spectra = signals.map((values: number[]) => spectrum({ values: floats(values), fps: 30 }));
    const tracker = new RateTracker();
    const check = (got: TrackedRate, want: Record<string, number>): void => {
      expectNear([got.bpm], [want.bpm], tolerance("track", "bpm"));
      expectNear([got.support], [want.support], tolerance("track", "support"));
      expectNear([got.sigmaBpm], [want.sigma_bpm], tolerance("track", "sigma_bpm"));
    };
    spectra.forEach((spec: ReturnType<typeof spectrum>, i: number) => check(tracker.update([spec], timesS[i]), causal[i]));
    check(new RateTracker().update(spectra.slice(0, 2), timesS[0]), suite.track.together);
    const halved = suite.track.halved;
    const follower = new RateTracker();
    const lines = halved.signals.map((values: number[]) => spectrum({ values: floats(values), fps: 30 }));
    halved.which.forEach((k: number, i: number) => check(follower.update([lines[k]], 10 + i), halved.causal[i]));
    const peaks = spectra.slice(0, 2).map((_: unknown, i: number) => spectralPeak({ values: floats(signals[i]), fps: 30 }));
    expectNear([jointBpm(peaks)!], [suite.track.joint_bpm], tolerance("track", "bpm"));
  });

  it("the rhythm of a window", () => {
    for (const { values, valid, rhythm: want, subharmonic_excess } of suite.rhythm) {
      const wave = { values: floats(values), fps: 30, startS: 2, valid: flags(valid) };
      const got = rhythm(wave, 72);
      expect(got === null).toBe(want === null);
      if (got !== null) expectNear([got.bpm, got.spread, got.match], [want.bpm, want.spread, want.match], tolerance("rhythm", "values"));
      const spec = spectrum(wave);
      expectNear([40, 76, 100, 130].map((bpm) => spec.subharmonicExcess(bpm / 60)), subharmonic_excess, tolerance("rhythm", "values"));
    }
  });

  it("the timing error of beats", () => {
    for (const { values, valid, beats, jitter_s } of suite.jitter) {
      const got = beatJitterS({ values: floats(values), fps: 30, startS: 2, valid: flags(valid) }, beats);
      expectNear([got / jitter_s], [1], tolerance("jitter", "values"));
    }
  });

  it("beats that match their template", () => {
    for (const { values, valid, beats, refined } of suite.jitter) {
      const got = refineBeats({ values: floats(values), fps: 30, startS: 2, valid: flags(valid) }, beats);
      expectClose(Float64Array.from(got), refined, 1e-9);
    }
  });

  it("variability", () => {
    for (const { beats, jitter_s, hrv: want } of suite.hrv) {
      const got = hrv(beats, jitter_s);
      expect(got === null).toBe(want === null);
      for (const [name, value] of Object.entries(want ?? {})) {
        const mine = (got as unknown as Record<string, number | null>)[name];
        if (value === null) expect(mine).toBeNull();
        else expectNear([mine!], [value as number], tolerance("hrv", "values"));
      }
    }
  });
});
