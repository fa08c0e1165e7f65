/** Heart rate variability and breathing rate from beats; a port of signal/hrv.py. */

import { reference } from "../data.js";
import { interp, median } from "./arrays.js";
import { rfft } from "./fft.js";
import { fastLength, removeLinearTrend } from "./filters.js";

const MIN_RMSSD_S = reference.hrv.MIN_DURATION_S.rmssd_ms;
const MIN_SDNN_S = reference.hrv.MIN_DURATION_S.sdnn_ms;
const MIN_LF_HF_S = reference.hrv.MIN_DURATION_S.lf_hf;
const MIN_RESPIRATION_S = reference.hrv.MIN_RESPIRATION_S;
const MAX_DROPPED = reference.hrv.MAX_DROPPED;
const MAX_NOISE = reference.hrv.MAX_NOISE; // share of a variance that may be noise of the beat times
const MAX_JITTER = reference.hrv.MAX_JITTER; // of the beat interval
const RMSSD_NOISE = reference.hrv.RMSSD_NOISE; // σ² of independent timing errors in the square of each value
const SDNN_NOISE = reference.hrv.SDNN_NOISE;
const LF_HZ = reference.hrv.LF_HZ;
const HF_HZ = reference.hrv.HF_HZ;
const BREATHING_HZ = reference.hrv.BREATHING_HZ; // 6–30 breaths per minute
const MIN_BREATHING_SHARE = reference.hrv.MIN_BREATHING_SHARE; // share of the variation that one peak must hold: 0.5 + 10 s / duration
const MIN_BREATHING_SHARE_S = reference.hrv.MIN_BREATHING_SHARE_S;
const TACHOGRAM_HZ = reference.hrv.TACHOGRAM_HZ;

/** Heart rate variability; a field is null if the recording is too short or too noisy for it. */
export interface Hrv {
  readonly beats: number;
  readonly duration_s: number;
  readonly rmssd_ms: number | null;
  readonly sdnn_ms: number | null;
  readonly pnn50: number | null; // 0–1
  readonly lf_hf: number | null;
  readonly breaths_per_minute: number | null;
}

/** Return the variability of beats with a timing error of `jitterS`; null if too short or incomplete. */
export function hrv(beatTimesS: readonly number[], jitterS = 0): Hrv | null {
  if (beatTimesS.length < 3) return null;
  const intervalsS = differences(beatTimesS);
  const normal = normalIntervals(intervalsS);
  const kept = intervalsS.filter((_, i) => normal[i]);
  const usableS = kept.reduce((a, b) => a + b, 0);
  if (kept.length / normal.length < 1 - MAX_DROPPED || usableS < MIN_RMSSD_S) return null;
  const changeMs = differences(intervalsS).filter((_, i) => normal[i] && normal[i + 1]).map((d) => 1000 * d);
  const mean = usableS / kept.length;
  const variance = kept.reduce((total, s) => total + (s - mean) ** 2, 0) / (kept.length - 1);
  const rmssdMs = Math.sqrt(changeMs.reduce((total, d) => total + d * d, 0) / changeMs.length);
  const exact = jitterS <= MAX_JITTER * median(intervalsS);
  const changesSeen = exact && RMSSD_NOISE * (1000 * jitterS) ** 2 <= MAX_NOISE * rmssdMs ** 2;
  const spreadSeen = exact && SDNN_NOISE * jitterS ** 2 <= MAX_NOISE * variance;
  const longEnough = usableS >= MIN_SDNN_S;
  return {
    beats: beatTimesS.length,
    duration_s: usableS,
    rmssd_ms: changesSeen ? Math.sqrt(Math.max(rmssdMs ** 2 - RMSSD_NOISE * (1000 * jitterS) ** 2, 0)) : null,
    sdnn_ms: spreadSeen && longEnough ? 1000 * Math.sqrt(Math.max(variance - SDNN_NOISE * jitterS ** 2, 0)) : null,
    pnn50: changesSeen && longEnough ? changeMs.filter((d) => Math.abs(d) > 50).length / changeMs.length : null,
    lf_hf: changesSeen && usableS >= MIN_LF_HF_S ? lfHf(beatTimesS, intervalsS, normal) : null,
    breaths_per_minute: respiration(beatTimesS),
  };
}

/** Return breaths per minute from the beat intervals, or null without a clear single peak. */
export function respiration(beatTimesS: readonly number[]): number | null {
  if (beatTimesS.length < 10 || beatTimesS[beatTimesS.length - 1] - beatTimesS[0] < MIN_RESPIRATION_S) return null;
  const intervalsS = differences(beatTimesS);
  const normal = normalIntervals(intervalsS);
  if (normal.filter(Boolean).length / normal.length < 1 - MAX_DROPPED) return null;
  const nyquistHz = 0.5 / median(intervalsS);
  const ceilingHz = Math.min(BREATHING_HZ[1], 0.9 * nyquistHz); // the beats do not sample faster breathing
  const series = tachogram(beatTimesS, intervalsS, normal);
  const durationS = series.length / TACHOGRAM_HZ;
  const { stepHz, power } = powerOf(series);
  let best = -1;
  power.forEach((p, i) => {
    if (i * stepHz >= BREATHING_HZ[0] && i * stepHz <= ceilingHz && (best < 0 || p > power[best])) best = i;
  });
  if (best < 0 || isFlat(series)) return null;
  if (power[best] < Math.max(power[best - 1], power[best + 1])) return null; // the slope of a peak outside the band
  const isVariation = (i: number): boolean => i * stepHz >= LF_HZ[0] && i * stepHz <= nyquistHz;
  const halfHz = Math.max(0.03, 1.5 / durationS);
  const line = bandSum(power, (i) => isVariation(i) && Math.abs((i - best) * stepHz) <= halfHz);
  const needed = MIN_BREATHING_SHARE + MIN_BREATHING_SHARE_S / durationS;
  return line >= needed * bandSum(power, isVariation) ? 60 * best * stepHz : null;
}

const differences = (values: readonly number[]): number[] => values.slice(1).map((v, i) => v - values[i]);

/** Return which intervals lie between two normal beats. */
export function normalIntervals(intervalsS: readonly number[]): boolean[] {
  const reach = 5;
  const last = intervalsS.length - 1;
  const at = (i: number): number => {
    if (intervalsS.length <= reach) return intervalsS[Math.min(Math.max(i, 0), last)]; // too few for reflection at the ends
    return intervalsS[i < 0 ? -i : i > last ? 2 * last - i : i];
  };
  return intervalsS.map((s, i) => {
    const around = median(Array.from({ length: 2 * reach + 1 }, (_, k) => at(i + k - reach)));
    return s > 0.3 && s < 1.5 && Math.abs(s - around) <= 0.25 * around;
  });
}

function tachogram(beatTimesS: readonly number[], intervalsS: readonly number[], normal: readonly boolean[]): Float64Array {
  const atS = beatTimesS.slice(1).filter((_, i) => normal[i]);
  const values = intervalsS.filter((_, i) => normal[i]);
  const count = Math.ceil((atS[atS.length - 1] - atS[0]) * TACHOGRAM_HZ);
  return Float64Array.from({ length: count }, (_, i) => interp(atS[0] + i / TACHOGRAM_HZ, atS, values));
}

function powerOf(values: Float64Array): { stepHz: number; power: Float64Array } {
  const last = values.length - 1;
  const x = removeLinearTrend(values).map((v, i) => v * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / last)));
  const size = fastLength(Math.max(4 * x.length, 1024));
  const { re, im } = rfft(x, size);
  return { stepHz: TACHOGRAM_HZ / size, power: re.map((r, i) => r * r + im[i] ** 2) };
}

function bandSum(power: Float64Array, wanted: (index: number) => boolean): number {
  return power.reduce((total, p, i) => (wanted(i) ? total + p : total), 0);
}

function lfHf(beatTimesS: readonly number[], intervalsS: readonly number[], normal: readonly boolean[]): number | null {
  const { stepHz, power } = powerOf(tachogram(beatTimesS, intervalsS, normal));
  const within = ([low, high]: readonly number[]) => bandSum(power, (i) => i * stepHz >= low && i * stepHz < high);
  const high = within(HF_HZ);
  return high > 0 ? within(LF_HZ) / high : null;
}

function isFlat(series: Float64Array): boolean {
  const mean = series.reduce((a, b) => a + b, 0) / series.length;
  const variance = series.reduce((total, v) => total + (v - mean) ** 2, 0) / series.length;
  return Math.sqrt(variance) < 1e-6 * Math.abs(mean);
}
