/** Heart rate: spectrum, interpolated peak, beats; a port of signal/rate.py. */

import { constants, reference } from "../data.js";
import type { Waveform } from "../types.js";
import { clip, median, sum } from "./arrays.js";
import { type Complex, rfft } from "./fft.js";
import { bandpass, fastLength, removeLinearTrend } from "./filters.js";
import { interpolateInvalid } from "./resample.js";
import { solve } from "./solve.js";

export const BAND_HZ = constants.band_hz; // 40–200 bpm
// Pulse shape: relative amplitude of the second harmonic and its phase lead in radians.
const SHAPE_RATIO = reference.rate.SHAPE_RATIO;
const SHAPE_PHASE = reference.rate.SHAPE_PHASE;
const TYPICAL_BPM = reference.rate.TYPICAL_BPM; // log-normal prior; noise is strongest at low frequencies
const TYPICAL_SPREAD = reference.rate.TYPICAL_SPREAD;
const MIN_CYCLES = reference.rate.MIN_CYCLES; // shortest signal for a rate, in cycles
const REPEATING = reference.rate.REPEATING; // frequencies that `subharmonicExcess` compares, in multiples of the rate
const EDGE_HZ = reference.rate.EDGE_HZ; // rounding of frequencies at the ends of that range
const LEAST_TRIPLE = reference.rate.LEAST_TRIPLE; // lowest rate whose third may be a rate, in multiples of the lowest rate
const LONGEST_LAG_S = reference.rate.LONGEST_LAG_S; // longest lag of the autocorrelation
const LONGEST_LAG = reference.rate.LONGEST_LAG; // the same as a share of the signal
const PADDED_STEP_HZ = reference.rate.PADDED_STEP_HZ;
const LINE_HALF_WIDTH_HZ = reference.rate.LINE_HALF_WIDTH_HZ;
// Phases at which the pulse shape is compared with peak and harmonic.
const SHAPE_PHASES = Array.from({ length: 37 }, (_, i) => -Math.PI / 2 + (i * Math.PI) / 36);

/** Spectrum of a window on a uniform frequency grid from 0 Hz. */
export class Spectrum {
  readonly power: Float64Array; // (F,) |tone|²

  constructor(
    readonly stepHz: number,
    readonly tone: Complex, // (F,) amplitude and phase in the middle of the window
    readonly durationS: number, // of the valid part of the window
  ) {
    this.power = tone.re.map((re, i) => re ** 2 + tone.im[i] ** 2);
  }

  inBand(index: number): boolean {
    const hz = index * this.stepHz;
    return hz >= BAND_HZ[0] && hz <= BAND_HZ[1];
  }

  /** Whether a frequency belongs to the peak at `hz`: ±0.1 Hz, more for short windows. */
  inLine(index: number, hz: number): boolean {
    const halfHz = Math.max(LINE_HALF_WIDTH_HZ, 1.5 / Math.max(this.durationS, 1e-9));
    return Math.abs(index * this.stepHz - hz) <= halfHz;
  }

  /** Power at any frequency; 0 beyond the end of the spectrum. */
  at(hz: number): number {
    return this.between(this.power, hz);
  }

  /** Power at `hz` that has the shape of an upright pulse, times the prior. */
  evidence(hz: number): number {
    const line = this.toneAt(hz);
    const harmonic = this.toneAt(2 * hz);
    const off = Math.atan2(harmonic[1], harmonic[0]) - 2 * Math.atan2(line[1], line[0]) - SHAPE_PHASE;
    const [fundamental, first] = [Math.hypot(...line), SHAPE_RATIO * Math.hypot(...harmonic)];
    const best = Math.max(...SHAPE_PHASES.map((turn) => fundamental * Math.cos(turn) + first * Math.cos(off - 2 * turn)));
    return (prior(hz) * best ** 2) / (1 + SHAPE_RATIO ** 2);
  }

  /**
   * How much better the signal repeats after two or three periods of a rate than after one: about 0 for a pulse, 0.3 to
   * 1 at twice its rate. Only frequencies from the rate upwards count.
   */
  subharmonicExcess(hz: number): number {
    if (this.durationS <= 0) return 0;
    const periodS = 1 / hz;
    const second = this.autocorrelation(hz, 2 * periodS);
    const longer = hz >= LEAST_TRIPLE * BAND_HZ[0] ? Math.max(second, this.autocorrelation(hz, 3 * periodS)) : second;
    return clip(longer - this.autocorrelation(hz, periodS), 0, 2);
  }

  /** Autocorrelation at a lag of the part from the rate upwards, divided by that of the Hann window (Boersma 1993). */
  private autocorrelation(hz: number, lagS: number): number {
    const every = Math.max(Math.floor(1 / (this.stepHz * (this.durationS + LONGEST_LAG_S))), 1);
    let [product, total] = [0, 0];
    for (let i = 0; i < this.power.length; i += every) {
      const partHz = i * this.stepHz;
      if (partHz < REPEATING[0] * hz - EDGE_HZ || partHz > REPEATING[1] * hz + EDGE_HZ) continue;
      product += this.power[i] * Math.cos(2 * Math.PI * lagS * partHz);
      total += this.power[i];
    }
    const share = Math.min(lagS / this.durationS, LONGEST_LAG);
    const turn = 2 * Math.PI * share;
    const hann = ((1 - share) * (2 + Math.cos(turn))) / 3 + Math.sin(turn) / (2 * Math.PI);
    return product / Math.max(total * hann, 1e-300);
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

/** A spectral peak. */
export interface Peak {
  readonly bpm: number;
  readonly power: number; // 0–1: share of the band's power within the peak
  readonly snrDb: number;
  readonly sigmaBpm: number;
}

/** Prior of a rate: 1 at 90 bpm, a quarter at the ends of the band. */
export function prior(hz: number): number {
  const distance = Math.log((Math.max(hz, 1e-3) * 60) / TYPICAL_BPM) / TYPICAL_SPREAD;
  return Math.exp(-0.5 * distance ** 2);
}

export interface Signal {
  readonly values: Float64Array;
  readonly fps: number;
  readonly valid?: Uint8Array;
}

/** Return the Hann-windowed, detrended, zero-padded spectrum of a signal. */
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

/** Return the strongest peak in the band, interpolated; null for a flat or too short signal. */
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
  if (band.length === 0 || highest <= roundingPower(signal.values)) return null;
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

/** Return the mean rate of several peaks, weighted by 1/σ²; 0 without a peak. */
export function jointBpm(peaks: readonly Peak[]): number {
  const weights = peaks.map((peak) => 1 / Math.max(peak.sigmaBpm, 1e-6) ** 2);
  return peaks.length === 0 ? 0 : sum(peaks.map((peak, i) => weights[i] * peak.bpm)) / sum(weights);
}

/** Return the share of the band within the peak, and the SNR in dB of peak and harmonic over the rest. */
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

/**
 * Return the interpolated times of systolic peaks; `bpm` is the rate, or the rate at each sample, if known. `band` is the
 * pass band in heart rates, `shortest` the shortest interval in mean intervals.
 */
export function findBeats(wave: Waveform, bpm?: number | Float64Array, band: readonly number[] = [0.6, 2.3], shortest = 0.55): number[] {
  const count = wave.values.length;
  const known = bpm ?? spectralPeak(wave)?.bpm;
  if (known === undefined) return [];
  const localHz = typeof known === "number" ? new Float64Array(count).fill(known / 60) : known.map((b) => b / 60);
  const low = band[0] * Math.min(...localHz);
  const high = Math.min(band[1] * Math.max(...localHz), (0.95 * wave.fps) / 2);
  if (count < 3 || low >= high) return [];
  const x = bandpass(interpolateInvalid(wave.values, wave.valid), wave.fps, low, high, 2);
  const chosen: number[] = [];
  for (let i = 1; i < count - 1; i++) {
    if (!(x[i] > x[i - 1] && x[i] >= x[i + 1] && x[i] > 0)) continue;
    const before = chosen[chosen.length - 1];
    if (before !== undefined && i - before < (shortest * wave.fps) / localHz[i]) {
      if (x[i] > x[before]) chosen[chosen.length - 1] = i; // keep the higher of two close maxima
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

/** Return the rate from the median beat interval, robust against missed or extra beats. */
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
    const turn = (Math.PI * i * (x.length - 1)) / size; // moves the phase reference to the middle of the window
    const [cos, sin] = [scale * Math.cos(turn), scale * Math.sin(turn)];
    tone.re[i] = transform.re[i] * cos - transform.im[i] * sin;
    tone.im[i] = transform.re[i] * sin + transform.im[i] * cos;
  }
  return new Spectrum(fps / size, tone, (2 * total) / fps);
}

/** Maximise the power explained by a tone with harmonic and drift. */
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
  for (let round = 0; round < 6; round++) { // hill climbing to the local maximum
    const values = [explained(hz - stepHz), explained(hz), explained(hz + stepHz)];
    const best = values.indexOf(Math.max(...values)) - 1;
    if (best === 0 || Math.abs(hz + best * stepHz - coarseHz) > 1 / durationS) break;
    hz += best * stepHz;
  }
  let sigmaHz = 0.5 / durationS;
  for (let round = 0; round < 12; round++) { // parabolic interpolation with decreasing steps
    const [left, middle, right] = [explained(hz - stepHz), explained(hz), explained(hz + stepHz)];
    const bend = left - 2 * middle + right;
    if (bend < 0) {
      hz += clip((0.5 * (left - right)) / bend, -1, 1) * stepHz;
      const noise = Math.max(energy - middle, 1e-12 * energy) / Math.max(t.length - 6, 1);
      sigmaHz = Math.min(sigmaHz, Math.sqrt((2 * noise * stepHz ** 2) / -bend));
    }
    stepHz *= 0.15; // each parabola leaves an error far below its step
    if (stepHz < 1e-4) break;
  }
  return { hz, sigmaHz };
}

/** Return detrended values and Hann weights, zero where invalid. */
function windowed({ values, valid }: Signal): { x: Float64Array; weights: Float64Array } {
  const count = values.length;
  const weights = new Float64Array(count);
  const seen = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    if (valid && !valid[i]) continue;
    weights[i] = Math.sin((Math.PI * (i + 0.5)) / count) ** 2;
    seen[i] = values[i];
  }
  return { x: removeLinearTrend(seen, weights), weights };
}

/** Power of rounding errors. */
function roundingPower(values: Float64Array): number {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  return 1e-24 * (1e-300 + largest ** 2);
}

