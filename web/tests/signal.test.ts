import { describe, expect, it } from "vitest";
import { fft, irfft, rfft } from "../src/signal/fft";
import { bandpass, fastLength, removeLine } from "../src/signal/filters";
import { hrv } from "../src/signal/hrv";
import { beatJitterS } from "../src/signal/beatJitter";
import { beatBpm, findBeats, jointBpm, type Peak, spectralPeak, spectrum } from "../src/signal/rate";
import { bridge, toUniform } from "../src/signal/resample";
import { RateTracker, type Tracked } from "../src/signal/rateTracking";
import { expectClose, flags, floats, goldens } from "./goldens";

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

  it("refuses lengths that it cannot do", () => {
    expect(() => fft({ re: new Float64Array(7), im: new Float64Array(7) })).toThrow(/length 7/);
  });
});

describe("Python and the page agree on", () => {
  it("filters", () => {
    const { values, bandpass: passed, line, lengths } = goldens.filters;
    expectClose(bandpass(floats(values), 30, 0.7, 4), floats(passed));
    expectClose(removeLine(floats(values)), floats(line));
    for (const [count, length] of lengths) expect(fastLength(count)).toBe(length);
  });

  it("the uniform clock", () => {
    const g = goldens.resample;
    const got = toUniform(floats(g.t_s), floats(g.values), 3, 30, flags(g.valid));
    expectClose(got.values, floats(g.out));
    expect([...got.valid]).toEqual(g.seen);
    expect(got.startS).toBe(g.start_s);
    expectClose(bridge(got.values, got.valid, 3), floats(g.bridged));
  });

  const expectPeak = (got: Peak | null, want: Record<string, number> | null): void => {
    if (want === null) return expect(got).toBeNull();
    expect(got!.bpm).toBeCloseTo(want.bpm, 6);
    expect(got!.power).toBeCloseTo(want.power, 8);
    expect(got!.snrDb).toBeCloseTo(want.snr_db, 6);
    expect(got!.sigmaBpm).toBeCloseTo(want.sigma_bpm, 5);
  };

  it.each(Object.keys(goldens.rate))("rate %s", (name) => {
    const g = goldens.rate[name];
    const wave = { values: floats(g.values), fps: g.fps, valid: flags(g.valid), startS: 2.5 };
    const spec = spectrum(wave);
    expect(spec.stepHz).toBeCloseTo(g.step_hz, 12);
    expect(spec.durationS).toBeCloseTo(g.duration_s, 9);
    expectClose(spec.power.filter((_power, i) => i % 50 === 0), g.power, 1e-7);
    expectPeak(spectralPeak(wave), g.peak);
    expectPeak(spectralPeak(wave, 80), g.near_80);
    expectClose(findBeats(wave, 75), g.beats, 1e-7);
    expectClose(findBeats(wave), g.beats_own, 1e-7);
    expect(beatBpm(g.beats) ?? 0).toBeCloseTo(g.beat_bpm ?? 0, 8);
  });

  it("the rate over time", () => {
    const { signals, times_s: timesS, causal } = goldens.track;
    const spectra = signals.map((values: number[]) => spectrum({ values: floats(values), fps: 30 }));
    const tracker = new RateTracker();
    const check = (got: Tracked, want: Record<string, number>): void => {
      expect(got.bpm).toBeCloseTo(want.bpm, 6);
      expect(got.support).toBeCloseTo(want.support, 8);
      expect(got.sigmaBpm).toBeCloseTo(want.sigma_bpm, 6);
    };
    spectra.forEach((spec: ReturnType<typeof spectrum>, i: number) => check(tracker.update([spec], timesS[i]), causal[i]));
    check(new RateTracker().update(spectra.slice(0, 2), timesS[0]), goldens.track.together);
    const peaks = spectra.slice(0, 2).map((_: unknown, i: number) => spectralPeak({ values: floats(signals[i]), fps: 30 }));
    expect(jointBpm(peaks)).toBeCloseTo(goldens.track.joint_bpm, 6);
  });

  it("how exactly beats are timed", () => {
    for (const { values, valid, beats, jitter_s } of goldens.jitter) {
      const got = beatJitterS({ values: floats(values), fps: 30, startS: 2, valid: flags(valid) }, beats);
      expect(got / jitter_s).toBeCloseTo(1, 6);
    }
  });

  it("variability", () => {
    for (const { beats, jitter_s, hrv: want } of goldens.hrv) {
      const got = hrv(beats, jitter_s);
      expect(got === null).toBe(want === null);
      for (const [name, value] of Object.entries(want ?? {})) {
        const mine = (got as unknown as Record<string, number | null>)[name];
        if (value === null) expect(mine).toBeNull();
        else expect(mine).toBeCloseTo(value as number, 6);
      }
    }
  });
});
