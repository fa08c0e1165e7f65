/** The numbers of a finished measurement, from its windows. It does not access the document. */

import { type FaceResult, isEstimate, type Reason, type WindowResult } from "phase-rppg";

const FLAT_BPM_PER_MIN = 2; // a smaller slope is even
const MIN_SLOPE_S = 30; // a slope needs this duration
const WINDOW_STEP_S = 1; // a reading stands for this time if it stands alone
const HIGH = { share: 0.8, pOk: 0.9 };
const LOW = { share: 0.4, pOk: 0.75 };

export type Grade = "high" | "medium" | "low";

/** One window of the trend; null where there was no reading. */
export interface TrendPoint {
  readonly tS: number;
  readonly bpm: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Statistics {
  readonly medianBpm: number;
  readonly meanBpm: number;
  readonly lowBpm: number; // of the readings, not of their intervals
  readonly highBpm: number;
  readonly slopeBpmPerMin: number | null; // null: too short
  readonly measuredS: number; // time with a reading
  readonly shownShare: number; // of the windows
  readonly pOk: number; // mean of the readings
  readonly grade: Grade;
}

export function trendOf(windows: readonly WindowResult[]): TrendPoint[] {
  return windows.map(({ endS, reading }) => (isEstimate(reading)
    ? { tS: endS, bpm: reading.bpm, low: reading.low, high: reading.high }
    : { tS: endS, bpm: null, low: null, high: null }));
}

/** Return the statistics of one face; null without a reading. */
export function statistics(face: FaceResult): Statistics | null {
  const shown = face.windows.map(({ reading }) => reading).filter(isEstimate);
  if (shown.length === 0) return null;
  const rates = shown.map(({ bpm }) => bpm);
  const mean = rates.reduce((total, bpm) => total + bpm, 0) / rates.length;
  const pOk = shown.reduce((total, reading) => total + reading.pOk, 0) / shown.length;
  const shownShare = shown.length / face.windows.length;
  return {
    medianBpm: isEstimate(face.summary) ? face.summary.bpm : mean,
    meanBpm: mean,
    lowBpm: Math.min(...rates),
    highBpm: Math.max(...rates),
    slopeBpmPerMin: slope(shown.map(({ endS }) => endS), rates),
    measuredS: coveredS(shown),
    shownShare, pOk,
    grade: shownShare >= HIGH.share && pOk >= HIGH.pOk ? "high" : shownShare < LOW.share || pOk < LOW.pOk ? "low" : "medium",
  };
}

/** Return the most frequent reason of the windows without a reading; null if there is none. */
export function mainReason(windows: readonly WindowResult[]): Reason | null {
  const counts = new Map<Reason, number>();
  for (const { reading } of windows) if (!isEstimate(reading)) counts.set(reading.reason, (counts.get(reading.reason) ?? 0) + 1);
  return [...counts].reduce<[Reason | null, number]>((best, one) => (one[1] > best[1] ? one : best), [null, 0])[0];
}

export const direction = (bpmPerMin: number): "up" | "down" | "flat" =>
  Math.abs(bpmPerMin) < FLAT_BPM_PER_MIN ? "flat" : bpmPerMin > 0 ? "up" : "down";

/** Return the time that readings cover; windows overlap. */
function coveredS(shown: readonly { readonly startS: number; readonly endS: number }[]): number {
  let [total, reached] = [0, -Infinity];
  for (const { startS, endS } of shown) {
    total += Math.max(0, endS - Math.max(startS, reached));
    reached = Math.max(reached, endS);
  }
  return total;
}

function slope(tS: readonly number[], bpm: readonly number[]): number | null {
  if (tS[tS.length - 1] - tS[0] < MIN_SLOPE_S) return null;
  const middle = tS.reduce((a, b) => a + b, 0) / tS.length;
  const mean = bpm.reduce((a, b) => a + b, 0) / bpm.length;
  const square = tS.reduce((total, s) => total + (s - middle) ** 2, 0);
  return (60 * tS.reduce((total, s, i) => total + (s - middle) * (bpm[i] - mean), 0)) / square;
}

/**
 * Return at most `count` points: windows are averaged in bins of equal duration, and the band of a bin holds the bands
 * of its windows. A bin without a reading stays empty, and a pause between two windows leaves an empty point.
 */
export function condensed(points: readonly TrendPoint[], count: number): TrendPoint[] {
  if (points.length === 0) return [];
  const spanS = points[points.length - 1].tS - points[0].tS + WINDOW_STEP_S;
  const binS = Math.max(WINDOW_STEP_S, spanS / count);
  const out: TrendPoint[] = [];
  let bin: TrendPoint[] = [];
  let index = 0;
  const close = (): void => {
    if (bin.length > 0) out.push(merged(bin));
    bin = [];
  };
  for (const point of points) {
    const at = Math.floor((point.tS - points[0].tS) / binS + 1e-6);
    if (at !== index) close();
    if (out.length > 0 && at > index + 1) out.push({ tS: out[out.length - 1].tS + binS, bpm: null, low: null, high: null });
    index = at;
    bin.push(point);
  }
  close();
  return out;
}

function merged(bin: readonly TrendPoint[]): TrendPoint {
  const good = bin.filter((point) => point.bpm !== null);
  const tS = bin.reduce((total, point) => total + point.tS, 0) / bin.length;
  if (good.length === 0) return { tS, bpm: null, low: null, high: null };
  return {
    tS,
    bpm: good.reduce((total, point) => total + point.bpm!, 0) / good.length,
    low: Math.min(...good.map((point) => point.low!)),
    high: Math.max(...good.map((point) => point.high!)),
  };
}
