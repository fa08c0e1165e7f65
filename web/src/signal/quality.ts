/** How far a line in a waveform can be believed; the twin of signal/quality.py. */

import type { RgbTrace } from "../types";
import { any, clip, column, mean, median } from "./arrays";
import { type Phasor, phasor, type Spectrum, spectrum } from "./rate";

const BESIDE_HZ = 0.6; // how far the surroundings of a line reach
const STANDS_OUT = 4; // a line counts from so many times the median power beside it

/** Relative colour change of the raw skin at the rate: AC/DC of green, about 0.001–0.01 for a pulse. */
export function pulsation(trace: RgbTrace, bpm: number): number {
  if (!any(trace.valid)) return 0;
  const green = column(trace.values, 3, 1);
  const level = mean(green.filter((_, i) => trace.valid[i]));
  if (level <= 0) return 0;
  return Math.sqrt(spectrum({ values: green, fps: trace.fps, valid: trace.valid }).at(bpm / 60)) / level;
}

/** How far the line at `bpm` stands out from what lies beside it in the raw green, in dB (±40 at most). */
export function visibleDb(trace: RgbTrace, bpm: number): number {
  if (!any(trace.valid)) return 0;
  const spec = spectrum({ values: column(trace.values, 3, 1), fps: trace.fps, valid: trace.valid });
  return decibel(spec.at(bpm / 60), beside(spec, bpm / 60));
}

/** How much of the skin's line at `bpm` the background shows in step with it, 0 to 2: about 1 for a changing light. */
export function backgroundCoherence(skin: RgbTrace, background: RgbTrace, bpm: number): number {
  return inStep(relativePhasors(background, bpm), relativePhasors(skin, bpm), 0);
}

/** 0–1: how far the background's line at `bpm` goes up and down together with the skin's. */
export function inPhase(skin: RgbTrace, background: RgbTrace, bpm: number): number {
  const [lit, seen] = [relativePhasors(background, bpm), relativePhasors(skin, bpm)];
  const size = Math.sqrt(dot(lit, lit) * dot(seen, seen));
  return size > 0 ? Math.max(dot(lit, seen) / size, 0) : 0;
}

/** Relative red over green at `bpm`, as far as it is in step with green: about 0.4 for blood, 1 for light and motion. */
export function red(trace: RgbTrace, bpm: number): number {
  const [redLine, greenLine] = relativePhasors(trace, bpm);
  return Math.hypot(...greenLine) > 0 ? inStep([redLine], [greenLine], -1) : 1;
}

/** 0–1: how much of a line at `bpm` another signal (T,columns) shows too. */
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

/** Spread between the channels of a mean colour, relative to its brightness: 0 for grey. */
export function colourfulness(rgb: readonly number[]): number {
  const level = (rgb[0] + rgb[1] + rgb[2]) / 3;
  return level > 0 ? (Math.max(...rgb) - Math.min(...rgb)) / level : 0;
}

/** 0–1: how far a line stands out from what lies beside it; noise seldom reaches above 0. */
function contrast(spec: Spectrum, hz: number): number {
  const power = spec.at(hz);
  return power > 0 ? Math.max(0, 1 - (STANDS_OUT * beside(spec, hz)) / power) : 0;
}

/** The median power within the band on both sides of a line. */
function beside(spec: Spectrum, hz: number): number {
  const found: number[] = [];
  for (let i = 0; i < spec.power.length; i++) {
    if (spec.inBand(i) && !spec.inLine(i, hz) && Math.abs(i * spec.stepHz - hz) <= BESIDE_HZ) found.push(spec.power[i]);
  }
  return found.length > 0 ? median(found) : spec.at(hz);
}

/** AC/DC of the three colours at `bpm`, with their phases. */
function relativePhasors(trace: RgbTrace, bpm: number): Phasor[] {
  if (!any(trace.valid)) return [[0, 0], [0, 0], [0, 0]];
  return [0, 1, 2].map((c) => {
    const values = column(trace.values, 3, c);
    const level = Math.max(mean(values.filter((_, i) => trace.valid[i])), 1);
    const [real, imaginary] = phasor({ values, fps: trace.fps, valid: trace.valid }, bpm);
    return [real / level, imaginary / level];
  });
}

/** The real part of the product of two lists of phasors, the second conjugated. */
function dot(a: readonly Phasor[], b: readonly Phasor[]): number {
  return a.reduce((total, [real, imaginary], i) => total + real * b[i][0] + imaginary * b[i][1], 0);
}

/** The part of `other` that goes with `line`, as a multiple of it; `least` to 2. */
function inStep(other: readonly Phasor[], line: readonly Phasor[], least: number): number {
  const power = dot(line, line);
  return clip(power > 0 ? dot(other, line) / power : 0, least, 2);
}

/** 10·log10 of a ratio of powers that may be zero, within ±40. */
function decibel(power: number, over: number): number {
  const floor = 1e-4 * Math.max(power, over) + 1e-30;
  return 10 * Math.log10(Math.max(power, floor) / Math.max(over, floor));
}
