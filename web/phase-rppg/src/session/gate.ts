/**
 * Decides whether a window gets a heart rate; a port of session/gate.py. A window is shown if `p_ok` reaches `ok` and
 * `p_alive` reaches `alive`, or `kept_alive` within `memory_s` of a confident window of the same face.
 */

import { reference } from "../data.js";
import { clip } from "../signal/arrays.js";
import { BAND_HZ, type Peak } from "../signal/rate.js";
import { type Estimate, isEstimate, type Quality, type Reading, type Reason } from "../types.js";
import type { Calibration, LogisticModel, Thresholds } from "./calibration.js";
import type { WindowResult } from "./results.js";
import { BEATS_ALIKE } from "./windowQuality.js";

const AMPLITUDE_CAP = reference.gate.AMPLITUDE_CAP; // relative change of the skin colour
const BLOOD_RED = reference.gate.BLOOD_RED; // red over green of the blood-volume signature of de Haan and van Leest (2014)
const BLOOD_GREY = reference.gate.BLOOD_GREY; // mean of red and blue over green of the same signature
const UNKNOWN_DISTANCE_BPM = reference.gate.UNKNOWN_DISTANCE_BPM; // between rate and beats, if there are too few beats
const PROBABLE_P_OK = reference.gate.PROBABLE_P_OK; // a refused window from this `p_ok` on names its rate as probable
const TOLERANCE_S = reference.gate.TOLERANCE_S; // rounding of window times
const MIN_EXPLAINED = reference.gate.MIN_EXPLAINED; // share of the spectral peak that background or motion must explain to be named

/** Return the features of the logistic models; their names are the keys of the data files. */
export function features(peak: Peak, quality: Quality): Record<string, number> {
  const noise = 10 ** (-quality.visible_db / 20); // of a colour ratio: noise relative to the peak
  return {
    snr_db: quality.snr_db,
    log_sigma: Math.log10(Math.max(peak.sigmaBpm, 1e-3)),
    log_track_sigma: Math.log10(Math.max(quality.track_sigma_bpm, 1e-2)),
    log_change: Math.log10(1 + quality.change_bpm),
    log_beat_distance: Math.log10(1 + beatDistanceBpm(peak, quality)),
    log_beat_difference: Math.log10(1 + quality.beat_difference_bpm),
    beat_match: quality.beat_match,
    irregularity: irregularity(peak, quality),
    log_amplitude: Math.log10(clip(quality.amplitude, 1e-6, AMPLITUDE_CAP)),
    background: quality.background,
    motion: quality.motion,
    support: quality.support,
    agreement: quality.agreement,
    visible_db: quality.visible_db,
    background_coherence: quality.background_coherence,
    red_excess: Math.max(quality.red - BLOOD_RED - noise, 0),
    red_deficit: Math.max(BLOOD_RED - quality.red - noise, 0),
    grey_excess: Math.max((quality.red + quality.blue) / 2 - BLOOD_GREY - noise, 0),
  };
}

/** Return the difference between the rate and the mean rate of the beats. */
const beatDistanceBpm = (peak: Peak, quality: Quality): number => (quality.beat_bpm > 0 ? Math.abs(peak.bpm - quality.beat_bpm) : UNKNOWN_DISTANCE_BPM);

/** Return the spread of the beat intervals; 0 if noise makes the beats, or if their mean is the rate. */
function irregularity(peak: Peak, quality: Quality): number {
  return quality.beat_match < BEATS_ALIKE || beatDistanceBpm(peak, quality) === 0 ? 0 : quality.beat_spread;
}

/** The gate of one face; it keeps the time of the last confident window until the face is lost. */
export class Gate {
  private confidentS: number | null = null; // end of the last confident window
  private lostS: number[] = []; // losses that are later than the last window

  constructor(private readonly calibration: Calibration, private readonly gated: boolean) {}

  /** Record that the face was lost at `tS`. */
  recordLoss(tS: number): void {
    this.lostS.push(tS);
  }

  /** Return the reading of the next window. */
  push(peak: Peak | null, quality: Quality, startS: number, endS: number): Reading {
    while (this.lostS.length > 0 && this.lostS[0] <= endS) {
      this.lostS.shift();
      this.confidentS = null; // a face that returns may belong to another person
    }
    const reading = gate(peak, quality, startS, endS, this.calibration, this.gated, this.confidentS);
    if (isShown(reading, false, this.calibration.thresholds)) this.confidentS = endS;
    return reading;
  }
}

/** Return an estimate if the window passes the gate, otherwise the reason. `confidentS`: end of the last confident window. */
export function gate(
  peak: Peak | null, quality: Quality, startS: number, endS: number, calibration: Calibration, gated = true,
  confidentS: number | null = null,
): Reading {
  const reason = violatedLimit(quality, endS - startS, calibration);
  if (peak === null) return { reason: reason ?? "NO_PULSE", startS, endS, pOk: 0, pAlive: 0 };
  const chances = reason === null ? probabilities(peak, quality, calibration) : { pOk: 0, pAlive: 0 };
  if (gated && reason !== null) return { reason, startS, endS, pOk: 0, pAlive: 0 };
  if (gated && !isShown(chances, isNear(calibration.thresholds, endS, confidentS), calibration.thresholds)) {
    const likely = Math.min(chances.pOk, chances.pAlive) >= PROBABLE_P_OK;
    return { reason: likelyCause(quality), startS, endS, ...chances, ...(likely ? { probableBpm: peak.bpm } : {}) };
  }
  return estimate(peak, quality, chances, startS, endS, calibration);
}

/**
 * Return the windows of one face in which refused windows that a later confident window confirms have a reading. A
 * confident window confirms no window from before a time in `lostS`, when the face was lost.
 */
export function inHindsight(windows: readonly WindowResult[], calibration: Calibration, lostS: readonly number[]): WindowResult[] {
  const lossesBefore = (tS: number): number => lostS.filter((lost) => lost <= tS).length;
  const confidentS: number[][] = []; // ends of confident windows, by the number of losses before them
  for (const { endS, reading } of windows)
    if (isShown(reading, false, calibration.thresholds)) (confidentS[lossesBefore(endS)] ??= []).push(endS);
  return windows.map((window) => {
    const { startS, endS, reading, peak, quality } = window;
    if (isEstimate(reading) || peak === null || lossesBefore(startS) !== lossesBefore(endS)) return window;
    const laterS = confidentS[lossesBefore(endS)]?.find((tS) => tS >= endS) ?? null;
    if (!isShown(reading, isNear(calibration.thresholds, endS, laterS), calibration.thresholds)) return window;
    const chances = { pOk: reading.pOk, pAlive: reading.pAlive ?? 0 };
    return { ...window, reading: estimate(peak, quality, chances, startS, endS, calibration) };
  });
}

interface Chances {
  readonly pOk: number;
  readonly pAlive?: number;
}

function estimate(peak: Peak, quality: Quality, { pOk, pAlive }: Chances, startS: number, endS: number, calibration: Calibration): Estimate {
  const halfBpm = halfWidthBpm(peak, quality, calibration);
  const low = Math.max(peak.bpm - halfBpm, 60 * BAND_HZ[0]);
  const high = Math.min(peak.bpm + halfBpm, 60 * BAND_HZ[1]);
  return { bpm: peak.bpm, low: Math.min(low, peak.bpm), high: Math.max(high, peak.bpm), pOk, pAlive, startS, endS };
}

/** Return half the width of the interval. */
function halfWidthBpm(peak: Peak, quality: Quality, { interval }: Calibration): number {
  const terms: Record<string, number> = {
    sigma_bpm: peak.sigmaBpm, track_sigma_bpm: quality.track_sigma_bpm, change_bpm: quality.change_bpm,
    beat_distance_bpm: beatDistanceBpm(peak, quality), beat_difference_bpm: quality.beat_difference_bpm,
    irregular_bpm: peak.bpm * irregularity(peak, quality),
  };
  return Object.entries(interval.scales).reduce((half, [name, scale]) => half + scale * terms[name], interval.floor_bpm);
}

/** Return whether a confident window at `confidentS` is near enough to lower the threshold of p_alive. */
function isNear({ memory_s }: Thresholds, endS: number, confidentS: number | null): boolean {
  return confidentS !== null && Math.abs(endS - confidentS) <= memory_s + TOLERANCE_S;
}

/** Return whether the probabilities are high enough; `kept` marks a window near a confident one. */
function isShown({ pOk, pAlive = 0 }: Chances, kept: boolean, thresholds: Thresholds): boolean {
  return pOk >= thresholds.ok && pAlive >= (kept ? thresholds.kept_alive : thresholds.alive);
}

/** Return `p_ok` and `p_alive` of a window by the calibrated models. */
export function probabilities(peak: Peak, quality: Quality, { ok, alive }: Calibration): { pOk: number; pAlive: number } {
  const values = features(peak, quality);
  return { pOk: probability(values, ok), pAlive: probability(values, alive) };
}

/** Return the probability that a logistic model gives to these features. */
function probability(values: Readonly<Record<string, number>>, model: LogisticModel): number {
  let logit = model.bias;
  for (const [name, feature] of Object.entries(model.features)) {
    if (!(name in values)) throw new Error(`the calibration has an unknown feature: ${name}`);
    logit += (feature.weight * (clip(values[name], feature.low, feature.high) - feature.mean)) / feature.std;
  }
  return 1 / (1 + Math.exp(-clip(logit, -30, 30)));
}

/** Lower bound of the distance between the peak's red-to-green ratio and that of blood. */
function colourDeviation(q: Quality): number {
  return Math.max(BLOOD_RED + Math.abs(q.red - BLOOD_RED) - 2 * 10 ** (-q.visible_db / 20), 0);
}

/** Return the reason for refusing a window whatever its probabilities, the most basic reason first. */
function violatedLimit(q: Quality, durationS: number, { limits }: Calibration): Reason | null {
  const checks: readonly [boolean, Reason][] = [
    [durationS < limits.min_seconds - 1e-6, "TOO_SHORT"],
    [q.fps < limits.min_fps, "LOW_FPS"],
    [q.max_gap_s > limits.max_gap_s, "BAD_TIMESTAMPS"],
    [q.coverage <= 0, "NO_FACE"],
    [q.coverage < limits.min_coverage, "FACE_LOST"],
    [q.face_px < limits.min_face_px, "FACE_TOO_SMALL"],
    [q.luma < limits.min_luma, "TOO_DARK"],
    [q.clipped > limits.max_clipped, "CLIPPED"],
    [q.colourfulness < limits.min_colourfulness, "NO_COLOUR"],
    [colourDeviation(q) > limits.max_colour_deviation, q.red > BLOOD_RED ? "LIGHT_FLICKER" : "NO_PULSE"],
    [q.background > limits.max_background || q.motion > limits.max_motion, likelyCause(q)],
  ];
  return checks.find(([failed]) => failed)?.[1] ?? null;
}

/** Return the reason for a refused peak: the signal that shares most of it, if any does. */
function likelyCause(q: Quality): Reason {
  if (Math.max(q.background, q.motion) < MIN_EXPLAINED) return "NO_PULSE";
  return q.background >= q.motion ? "LIGHT_FLICKER" : "MOTION";
}
