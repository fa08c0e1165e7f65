/** How far a line in a waveform can be believed; the twin of signal/quality.py. */

import type { RgbTrace } from "../types";
import { any, column, median } from "./arrays";
import { type Spectrum, spectrum } from "./rate";

const BESIDE_HZ = 0.6; // how far the surroundings of a line reach
const STANDS_OUT = 4; // a line counts from so many times the median power beside it

/** Relative colour change of the raw skin at the rate: AC/DC of green, about 0.001–0.01 for a pulse. */
export function pulsation(trace: RgbTrace, bpm: number): number {
  if (!any(trace.valid)) return 0;
  const green = column(trace.values, 3, 1);
  let level = 0;
  let count = 0;
  green.forEach((value, i) => {
    if (trace.valid[i]) [level, count] = [level + value, count + 1];
  });
  level /= count;
  if (level <= 0) return 0;
  return Math.sqrt(spectrum({ values: green, fps: trace.fps, valid: trace.valid }).at(bpm / 60)) / level;
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
  const beside: number[] = [];
  for (let i = 0; i < spec.power.length; i++) {
    if (spec.inBand(i) && !spec.inLine(i, hz) && Math.abs(i * spec.stepHz - hz) <= BESIDE_HZ) beside.push(spec.power[i]);
  }
  const power = spec.at(hz);
  return power <= 0 || beside.length === 0 ? 0 : Math.max(0, 1 - (STANDS_OUT * median(beside)) / power);
}
