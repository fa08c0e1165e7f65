/** Quality features of a spectral peak; a port of signal/quality.py. */

import { reference } from "../data.js";
import type { RgbTrace, Waveform } from "../types.js";
import { any, clip, column, mean, median } from "./arrays.js";
import { type Phasor, phasor, type Spectrum, spectrum } from "./rate.js";

const NEIGHBOURHOOD_HZ = reference.quality.NEIGHBOURHOOD_HZ; // half-width of the surroundings of a peak
const MIN_CONTRAST = reference.quality.MIN_CONTRAST; // a peak counts above this multiple of the surrounding median power

/** AC/DC of the raw green channel at the rate, about 0.001–0.01 for a pulse. */
export function pulsation(trace: RgbTrace, bpm: number): number {
  if (!any(trace.valid)) return 0;
  const green = column(trace.values, 3, 1);
  const level = mean(green.filter((_, i) => trace.valid[i]));
  if (level <= 0) return 0;
  return Math.sqrt(spectrum({ values: green, fps: trace.fps, valid: trace.valid }).at(bpm / 60)) / level;
}

/** Power of the raw green channel at `bpm` over the surrounding power, in dB (±40 at most). */
export function visibleDb(trace: RgbTrace, bpm: number): number {
  if (!any(trace.valid)) return 0;
  const spec = spectrum({ values: column(trace.values, 3, 1), fps: trace.fps, valid: trace.valid });
  return decibel(spec.at(bpm / 60), neighbourhoodPower(spec, bpm / 60));
}

/** In-phase part of the background at `bpm` relative to the skin, 0 to 2; about 1 under flicker. */
export function backgroundCoherence(skin: RgbTrace, background: RgbTrace, bpm: number): number {
  return inPhaseRatio(relativePhasors(background, bpm), relativePhasors(skin, bpm), 0);
}

/** Phase agreement of background and skin at `bpm`, 0–1. */
export function inPhase(skin: RgbTrace, background: RgbTrace, bpm: number): number {
  const [lit, seen] = [relativePhasors(background, bpm), relativePhasors(skin, bpm)];
  const size = Math.sqrt(dot(lit, lit) * dot(seen, seen));
  return size > 0 ? Math.max(dot(lit, seen) / size, 0) : 0;
}

/** In-phase ratios of red and blue to green at `bpm`: about 0.4 and 0.7 for blood, 1 for white light and motion. */
export function colourRatios(trace: RgbTrace, bpm: number): { red: number; blue: number } {
  const [redLine, greenLine, blueLine] = relativePhasors(trace, bpm);
  if (!(Math.hypot(...greenLine) > 0)) return { red: 1, blue: 1 };
  return { red: inPhaseRatio([redLine], [greenLine], -1), blue: inPhaseRatio([blueLine], [greenLine], -1) };
}

/** Difference between the rates with the most evidence in the two halves of a waveform. */
export function rateChangeBpm({ values, fps, valid }: Waveform): number {
  const half = Math.floor(values.length / 2);
  const found: number[] = [];
  for (const start of [0, values.length - half]) {
    const part = { values: values.slice(start, start + half), fps, valid: valid.slice(start, start + half) };
    if (!any(part.valid)) return 0;
    const spec = spectrum(part);
    let best = 0;
    let most = -Infinity;
    for (let i = 0; i < spec.power.length; i++) {
      if (!spec.inBand(i)) continue;
      const evidence = spec.evidence(i * spec.stepHz);
      if (evidence > most) [best, most] = [i, evidence];
    }
    found.push(60 * best * spec.stepHz);
  }
  return Math.abs(found[1] - found[0]);
}

/** Share of a peak at `bpm` in another signal (T,columns), 0–1. */
export function sharedLine(
  other: Float64Array, columns: number, fps: number, bpm: number, valid: Uint8Array, fullScale?: number,
): number {
  if (other.length === 0 || !any(valid)) return 0;
  let strongest = 0;
  for (let c = 0; c < columns; c++) {
    const values = column(other, columns, c);
    const spec = spectrum({ values, fps, valid });
    const total = spec.bandPower();
    let largest = 0;
    for (const value of values) largest = Math.max(largest, Math.abs(value));
    if (total <= 1e-24 * (1e-12 + largest ** 2)) continue;
    let line = 0;
    let lineCount = 0;
    let bandCount = 0;
    for (let i = 0; i < spec.power.length; i++) {
      if (!spec.inBand(i)) continue;
      bandCount++;
      if (spec.inLine(i, bpm / 60)) [line, lineCount] = [line + spec.power[i], lineCount + 1];
    }
    const chance = lineCount / Math.max(bandCount, 1);
    let strength = Math.max(0, (line / total - chance) / Math.max(1 - chance, 1e-9));
    if (fullScale !== undefined && fullScale > 0) {
      strength = Math.max(strength, contrast(spec, bpm / 60)) * Math.min(1, Math.sqrt(spec.at(bpm / 60)) / fullScale);
    }
    strongest = Math.max(strongest, strength);
  }
  return Math.min(strongest, 1);
}

/** Range of the channels of a mean colour relative to its brightness; 0 for grey. */
export function colourfulness(rgb: readonly number[]): number {
  const level = (rgb[0] + rgb[1] + rgb[2]) / 3;
  return level > 0 ? (Math.max(...rgb) - Math.min(...rgb)) / level : 0;
}

/** Contrast of a peak with its surroundings, 0–1; noise rarely exceeds 0. */
function contrast(spec: Spectrum, hz: number): number {
  const power = spec.at(hz);
  return power > 0 ? Math.max(0, 1 - (MIN_CONTRAST * neighbourhoodPower(spec, hz)) / power) : 0;
}

/** Median power on both sides of a peak, within the band. */
function neighbourhoodPower(spec: Spectrum, hz: number): number {
  const found: number[] = [];
  for (let i = 0; i < spec.power.length; i++) {
    if (spec.inBand(i) && !spec.inLine(i, hz) && Math.abs(i * spec.stepHz - hz) <= NEIGHBOURHOOD_HZ) found.push(spec.power[i]);
  }
  return found.length > 0 ? median(found) : spec.at(hz);
}

/** AC/DC of the three colours at `bpm` as phasors. */
function relativePhasors(trace: RgbTrace, bpm: number): Phasor[] {
  if (!any(trace.valid)) return [[0, 0], [0, 0], [0, 0]];
  return [0, 1, 2].map((c) => {
    const values = column(trace.values, 3, c);
    const level = Math.max(mean(values.filter((_, i) => trace.valid[i])), 1);
    const [real, imaginary] = phasor({ values, fps: trace.fps, valid: trace.valid }, bpm);
    return [real / level, imaginary / level];
  });
}

/** Real part of the inner product of two lists of phasors. */
function dot(a: readonly Phasor[], b: readonly Phasor[]): number {
  return a.reduce((total, [real, imaginary], i) => total + real * b[i][0] + imaginary * b[i][1], 0);
}

/** Projection of `other` on `line`, clipped to `least` … 2. */
function inPhaseRatio(other: readonly Phasor[], line: readonly Phasor[], least: number): number {
  const power = dot(line, line);
  return clip(power > 0 ? dot(other, line) / power : 0, least, 2);
}

/** Ratio of two powers in dB, within ±40. */
function decibel(power: number, over: number): number {
  const floor = 1e-4 * Math.max(power, over) + 1e-30;
  return 10 * Math.log10(Math.max(power, floor) / Math.max(over, floor));
}
