/** How fast the heart beats: spectrum, interpolated peak, beats; the twin of signal/rate.py. */

import type { Waveform } from "../types";
import { clip, median, sum } from "./arrays";
import { type Complex, rfft } from "./fft";
import { bandpass, fastLength, removeLine } from "./filters";
import { bridge } from "./resample";
import { solve } from "./solve";

export const BAND_HZ = [0.66, 3.34] as const; // 40–200 bpm
// A pulse rises faster than it falls: so strong is its first harmonic, and so far it leads its line (radians).
const SHAPE_RATIO = 0.4;
const SHAPE_PHASE = 1.6;
const TYPICAL_BPM = 90; // a broad log-normal weight: noise is strongest at the low end of the band
const TYPICAL_SPREAD = 0.5;
const MIN_CYCLES = 3; // fewer cycles than this do not make a rate
const PADDED_STEP_HZ = 0.5 / 60;
const LINE_HALF_WIDTH_HZ = 0.1;
// Ways to lay the shape over line and harmonic.
const TURNS = Array.from({ length: 37 }, (_, i) => -Math.PI / 2 + (i * Math.PI) / 36);

/** Tones of a window over frequency, on a uniform grid that starts at 0 Hz. */
export class Spectrum {
  readonly power: Float64Array; // (F,) |tone|²

  constructor(
    readonly stepHz: number,
    readonly tone: Complex, // (F,) amplitude at that frequency, and the phase in the middle of the window
    readonly durationS: number, // of the valid part of the window
  ) {
    this.power = tone.re.map((re, i) => re ** 2 + tone.im[i] ** 2);
  }

  inBand(index: number): boolean {
    const hz = index * this.stepHz;
    return hz >= BAND_HZ[0] && hz <= BAND_HZ[1];
  }

  /** Whether a frequency belongs to the line at `hz`: ±0.1 Hz, or the width that a short window has. */
  inLine(index: number, hz: number): boolean {
    const halfHz = Math.max(LINE_HALF_WIDTH_HZ, 1.5 / Math.max(this.durationS, 1e-9));
    return Math.abs(index * this.stepHz - hz) <= halfHz;
  }

  /** Power at any frequency; nothing beyond the end of the spectrum. */
  at(hz: number): number {
    return this.between(this.power, hz);
  }

  /** Power of an upright pulse at `hz`, as far as line and first harmonic have its shape; times the prior. */
  evidence(hz: number): number {
    const line = this.toneAt(hz);
    const harmonic = this.toneAt(2 * hz);
    const off = Math.atan2(harmonic[1], harmonic[0]) - 2 * Math.atan2(line[1], line[0]) - SHAPE_PHASE;
    const [fundamental, first] = [Math.hypot(...line), SHAPE_RATIO * Math.hypot(...harmonic)];
    const best = Math.max(...TURNS.map((turn) => fundamental * Math.cos(turn) + first * Math.cos(off - 2 * turn)));
    return (prior(hz) * best ** 2) / (1 + SHAPE_RATIO ** 2);
  }

  private toneAt(hz: number): Phasor {
    return [this.between(this.tone.re, hz), this.between(this.tone.im, hz)];
  }

  private between(values: Float64Array, hz: number): number {
    const place = hz / this.stepHz;
    const last = values.length - 1;
    if (place > last) return 0;
    const left = Math.min(Math.floor(place), last - 1);
    return values[left] + (place - left) * (values[left + 1] - values[left]);
  }

  bandPower(): number {
    let total = 0;
    for (let i = 0; i < this.power.length; i++) if (this.inBand(i)) total += this.power[i];
    return total;
  }
}

/** A line in the spectrum that may be the pulse. */
export interface Peak {
  readonly bpm: number;
  readonly power: number; // 0–1: share of the band's power within the line
  readonly snrDb: number;
  readonly sigmaBpm: number;
}

/** How plausible a rate is before anything was seen: 1 at 90 bpm, a quarter at the ends of the band. */
export function prior(hz: number): number {
  const distance = Math.log((Math.max(hz, 1e-3) * 60) / TYPICAL_BPM) / TYPICAL_SPREAD;
  return Math.exp(-0.5 * distance ** 2);
}

export interface Signal {
  readonly values: Float64Array;
  readonly fps: number;
  readonly valid?: Uint8Array;
}

/** Hann-windowed, drift-free, finely padded power spectrum of a window. */
export function spectrum(signal: Signal): Spectrum {
  const { x, weights } = windowed(signal);
  return spectrumOf(x, weights, signal.fps);
}

/** A tone's amplitude and phase as a complex number. */
export type Phasor = readonly [real: number, imaginary: number];

/** Amplitude and phase of the tone at `bpm`, Hann-weighted. */
export function phasor(signal: Signal, bpm: number): Phasor {
  const { x, weights } = windowed(signal);
  const total = sum(weights);
  let [real, imaginary] = [0, 0];
  for (let i = 0; i < x.length; i++) {
    const turn = (2 * Math.PI * bpm * i) / (60 * signal.fps);
    real += x[i] * weights[i] * Math.cos(turn);
    imaginary -= x[i] * weights[i] * Math.sin(turn);
  }
  return total > 0 ? [(2 * real) / total, (2 * imaginary) / total] : [0, 0];
}

/** The strongest line of the band, interpolated; null when there is nothing (flat, or too few cycles). */
export function spectralPeak(signal: Signal, nearBpm?: number, withinBpm = 6): Peak | null {
  const { x, weights } = windowed(signal);
  const spec = spectrumOf(x, weights, signal.fps);
  const isNear = (i: number) => nearBpm === undefined || Math.abs(i * spec.stepHz - nearBpm / 60) <= withinBpm / 60;
  let highest = -1;
  let band: number[] = [];
  for (let i = 0; i < spec.power.length; i++) {
    if (!spec.inBand(i)) continue;
    band.push(i);
    highest = Math.max(highest, spec.power[i]);
  }
  if (band.length === 0 || highest <= nothing(signal.values)) return null;
  if (band.some(isNear)) band = band.filter(isNear);
  let best = band[0];
  let most = -1;
  for (const i of band) {
    const evidence = spec.evidence(i * spec.stepHz);
    if (evidence > most) [best, most] = [i, evidence];
  }
  const coarseHz = best * spec.stepHz;
  if (coarseHz * spec.durationS < MIN_CYCLES) return null;
  const { hz, sigmaHz } = refine(x, signal.fps, weights, coarseHz, spec.durationS);
  const { share, snrDb } = lineShare(spec, hz);
  return { bpm: 60 * hz, power: share, snrDb, sigmaBpm: 60 * sigmaHz };
}

/** The rate of one heart in several waves: the mean, each peak weighted by 1/σ²; 0 without a peak. */
export function jointBpm(peaks: readonly Peak[]): number {
  const weights = peaks.map((peak) => 1 / Math.max(peak.sigmaBpm, 1e-6) ** 2);
  return peaks.length === 0 ? 0 : sum(peaks.map((peak, i) => weights[i] * peak.bpm)) / sum(weights);
}

/** Share of the band within the line, and SNR in dB of line plus harmonic over the rest of the band. */
export function lineShare(spec: Spectrum, hz: number): { share: number; snrDb: number } {
  let signal = 0;
  let rest = 0;
  let total = 0;
  let line = 0;
  for (let i = 0; i < spec.power.length; i++) {
    const power = spec.power[i];
    const band = spec.inBand(i);
    const onLine = band && spec.inLine(i, hz);
    const onHarmonic = spec.inLine(i, 2 * hz);
    if (onLine || onHarmonic) signal += power;
    if (band) total += power;
    if (band && !onLine && !onHarmonic) rest += power;
    if (onLine) line += power;
  }
  const floor = 1e-6 * (signal + rest) + 1e-300; // SNR is finite: ±60 dB
  return {
    share: total > 0 ? line / total : 0,
    snrDb: 10 * Math.log10(Math.max(signal, floor) / Math.max(rest, floor)),
  };
}

/** Times of the systolic peaks, between samples; `bpm` is the rate, or the rate at each sample, if known. */
export function findBeats(wave: Waveform, bpm?: number | Float64Array): number[] {
  const count = wave.values.length;
  const known = bpm ?? spectralPeak(wave)?.bpm;
  if (known === undefined) return [];
  const localHz = typeof known === "number" ? new Float64Array(count).fill(known / 60) : known.map((b) => b / 60);
  const low = 0.6 * Math.min(...localHz);
  const high = Math.min(2.3 * Math.max(...localHz), (0.95 * wave.fps) / 2);
  if (count < 3 || low >= high) return [];
  const x = bandpass(bridge(wave.values, wave.valid), wave.fps, low, high, 2);
  const chosen: number[] = [];
  for (let i = 1; i < count - 1; i++) {
    if (!(x[i] > x[i - 1] && x[i] >= x[i + 1] && x[i] > 0)) continue;
    const before = chosen[chosen.length - 1];
    if (before !== undefined && i - before < (0.55 * wave.fps) / localHz[i]) {
      if (x[i] > x[before]) chosen[chosen.length - 1] = i; // of two close maxima the higher one stays
    } else chosen.push(i);
  }
  return chosen
    .filter((i) => wave.valid[i])
    .map((i) => {
      const bend = x[i - 1] - 2 * x[i] + x[i + 1];
      const shift = bend < 0 ? (0.5 * (x[i - 1] - x[i + 1])) / bend : 0;
      return wave.startS + (i + shift) / wave.fps;
    });
}

/** The rate from beats: the median interval, unmoved by single missed or extra beats. */
export function beatBpm(beatTimesS: readonly number[]): number | null {
  if (beatTimesS.length < 3) return null;
  return 60 / median(beatTimesS.slice(1).map((t, i) => t - beatTimesS[i]));
}

function spectrumOf(x: Float64Array, weights: Float64Array, fps: number): Spectrum {
  const size = fastLength(Math.max(2 * x.length, Math.ceil(fps / PADDED_STEP_HZ)));
  const transform = rfft(x.map((value, i) => value * weights[i]), size);
  const total = sum(weights);
  const scale = total > 0 ? 2 / total : 0;
  const tone = { re: new Float64Array(transform.re.length), im: new Float64Array(transform.re.length) };
  for (let i = 0; i < tone.re.length; i++) {
    const turn = (Math.PI * i * (x.length - 1)) / size; // from the beginning of the window to its middle
    const [cos, sin] = [scale * Math.cos(turn), scale * Math.sin(turn)];
    tone.re[i] = transform.re[i] * cos - transform.im[i] * sin;
    tone.im[i] = transform.re[i] * sin + transform.im[i] * cos;
  }
  return new Spectrum(fps / size, tone, (2 * total) / fps);
}

/** Maximise the power that a tone with harmonic and drift explains. */
function refine(
  x: Float64Array, fps: number, weights: Float64Array, coarseHz: number, durationS: number,
): { hz: number; sigmaHz: number } {
  const count = x.length;
  const used: number[] = [];
  weights.forEach((w, i) => w > 0 && used.push(i));
  const t = used.map((i) => (i - (count - 1) / 2) / fps);
  const w = used.map((i) => weights[i]);
  const y = used.map((i) => x[i]);
  let energy = 0;
  for (let i = 0; i < y.length; i++) energy += w[i] * y[i] * y[i];

  function explained(hz: number): number {
    const tones = 2 * hz < (0.9 * fps) / 2 ? [hz, 2 * hz] : [hz];
    const size = 2 + 2 * tones.length;
    const gram = new Float64Array(size * size);
    const right = new Float64Array(size);
    const row = new Float64Array(size);
    for (let i = 0; i < t.length; i++) {
      row[0] = 1;
      row[1] = t[i] / Math.max(durationS, 1e-9);
      tones.forEach((tone, k) => {
        row[2 + k] = Math.cos(2 * Math.PI * t[i] * tone);
        row[2 + tones.length + k] = Math.sin(2 * Math.PI * t[i] * tone);
      });
      for (let a = 0; a < size; a++) {
        const weighted = row[a] * w[i];
        right[a] += weighted * y[i];
        for (let b = a; b < size; b++) gram[a * size + b] += weighted * row[b];
      }
    }
    for (let a = 0; a < size; a++) {
      for (let b = 0; b < a; b++) gram[a * size + b] = gram[b * size + a];
      gram[a * size + a] *= 1 + 1e-9;
    }
    const solved = solve(gram, right);
    let power = 0;
    for (let a = 0; a < size; a++) power += right[a] * solved[a];
    return power;
  }

  let hz = coarseHz;
  let stepHz = 0.2 / durationS;
  for (let round = 0; round < 6; round++) { // climb to the local maximum first
    const values = [explained(hz - stepHz), explained(hz), explained(hz + stepHz)];
    const best = values.indexOf(Math.max(...values)) - 1;
    if (best === 0 || Math.abs(hz + best * stepHz - coarseHz) > 1 / durationS) break;
    hz += best * stepHz;
  }
  let sigmaHz = 0.5 / durationS;
  for (let round = 0; round < 12; round++) { // then parabolas on a shrinking stencil
    const [left, middle, right] = [explained(hz - stepHz), explained(hz), explained(hz + stepHz)];
    const bend = left - 2 * middle + right;
    if (bend < 0) {
      hz += clip((0.5 * (left - right)) / bend, -1, 1) * stepHz;
      const noise = Math.max(energy - middle, 1e-12 * energy) / Math.max(t.length - 6, 1);
      sigmaHz = Math.min(sigmaHz, Math.sqrt((2 * noise * stepHz ** 2) / -bend));
    }
    stepHz *= 0.15; // each parabola leaves an error far below its stencil
    if (stepHz < 1e-4) break;
  }
  return { hz, sigmaHz };
}

/** Drift-free values, and Hann weights that are zero where invalid. */
function windowed({ values, valid }: Signal): { x: Float64Array; weights: Float64Array } {
  const count = values.length;
  const weights = new Float64Array(count);
  const seen = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    if (valid && !valid[i]) continue;
    weights[i] = Math.sin((Math.PI * (i + 0.5)) / count) ** 2;
    seen[i] = values[i];
  }
  return { x: removeLine(seen, weights), weights };
}

/** Power below this is rounding, not signal. */
function nothing(values: Float64Array): number {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  return 1e-24 * (1e-300 + largest ** 2);
}

