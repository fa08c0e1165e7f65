/** The only gate: what is known about a window → a heart rate, or the reason; the twin of session/gate.py. */

import { clip } from "../signal/arrays";
import { BAND_HZ, type Peak } from "../signal/rate";
import type { Quality, Reading, Reason } from "../types";
import type { Calibration } from "./calibration";

const PLAIN_AMPLITUDE = 5e-4; // a skin that changes by this share is no photo; more says nothing of blood
const BLOOD_RED = 0.43; // red over green of the blood-volume signature of de Haan and van Leest (2014)
const MOST = 0.5; // a cause is named when it shows most of the line; it decides only the word, not the refusal

/** The terms of the logistic model; their names are the keys of the data files. */
export function features(peak: Peak, quality: Quality): Record<string, number> {
  return {
    snr_db: quality.snr_db,
    share: peak.power,
    log_sigma: Math.log10(Math.max(peak.sigmaBpm, 1e-3)),
    log_amplitude: Math.log10(clip(quality.amplitude, 1e-6, PLAIN_AMPLITUDE)),
    background: quality.background,
    motion: quality.motion,
    support: quality.support,
    agreement: quality.agreement,
    visible_db: quality.visible_db,
    background_coherence: quality.background_coherence,
    off_colour: offColour(quality),
  };
}

/** An estimate when the window can be believed, otherwise the reason why not. `sureS`: when this face was last sure. */
export function gate(
  peak: Peak | null, quality: Quality, startS: number, endS: number, calibration: Calibration, gated = true,
  sureS: number | null = null,
): Reading {
  const reason = unfit(quality, endS - startS, calibration);
  if (peak === null) return { reason: reason ?? "NO_PULSE", startS, endS, pOk: 0 };
  const pOk = reason === null ? probability(peak, quality, calibration) : 0;
  if (gated && reason !== null) return { reason, startS, endS, pOk: 0 };
  if (gated && pOk < needed(calibration, endS, sureS)) return { reason: why(quality), startS, endS, pOk };
  const halfBpm = calibration.interval_floor_bpm + calibration.interval_scale * peak.sigmaBpm;
  const low = Math.max(peak.bpm - halfBpm, 60 * BAND_HZ[0]);
  const high = Math.min(peak.bpm + halfBpm, 60 * BAND_HZ[1]);
  return { bpm: peak.bpm, low: Math.min(low, peak.bpm), high: Math.max(high, peak.bpm), pOk, startS, endS };
}

/** The least p_ok that is shown in a window that ends at `endS`. */
export function needed(calibration: Calibration, endS: number, sureS: number | null): number {
  const alive = sureS !== null && Math.abs(endS - sureS) <= calibration.memory_s + 1e-6;
  return alive ? calibration.kept_threshold : calibration.threshold;
}

/** P(|error| ≤ 5 bpm) of this window by the calibrated logistic model. */
export function probability(peak: Peak, quality: Quality, calibration: Calibration): number {
  let logit = calibration.bias;
  const values = features(peak, quality);
  for (const [name, feature] of Object.entries(calibration.features)) {
    if (!(name in values)) throw new Error(`the calibration asks for an unknown feature: ${name}`);
    logit += (feature.weight * (clip(values[name], feature.low, feature.high) - feature.mean)) / feature.std;
  }
  return 1 / (1 + Math.exp(-clip(logit, -30, 30)));
}

/** How far red over green of the line is from that of blood, at the least: noise blurs a faint line. */
function offColour(q: Quality): number {
  return Math.max(BLOOD_RED + Math.abs(q.red - BLOOD_RED) - 2 * 10 ** (-q.visible_db / 20), 0);
}

/** What makes a window unusable whatever its line looks like, the most basic first. */
function unfit(q: Quality, durationS: number, { limits }: Calibration): Reason | null {
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
    [offColour(q) > limits.max_off_colour, q.red > BLOOD_RED ? "LIGHT_FLICKER" : "NO_PULSE"],
    [q.background > limits.max_background || q.motion > limits.max_motion, why(q)],
  ];
  return checks.find(([failed]) => failed)?.[1] ?? null;
}

/** The most likely cause of a line that is not believed: what shows most of the same line. */
function why(q: Quality): Reason {
  if (Math.max(q.background, q.motion) < MOST) return "NO_PULSE";
  return q.background >= q.motion ? "LIGHT_FLICKER" : "MOTION";
}
