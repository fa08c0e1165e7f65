/** Quality features of one window, the input of the gate; a port of session/window_quality.py. */

import { reference } from "../data.js";
import * as chrom from "../methods/chrom.js";
import * as pos from "../methods/pos.js";
import { any, column, median } from "../signal/arrays.js";
import { removeMotion } from "../signal/motionRemoval.js";
import { backgroundCoherence, colourfulness, colourRatios, inPhase, pulsation, rateChangeBpm, sharedLine, visibleDb } from "../signal/quality.js";
import { type Peak, spectralPeak } from "../signal/rate.js";
import type { TrackedRate } from "../signal/rateTracking.js";
import { rhythm } from "../signal/rhythm.js";
import type { Quality, RgbTrace, Waveform } from "../types.js";
import type { WindowSamples } from "./windowSamples.js";

// Periodic motion of this many face widths at the pulse rate can explain the whole spectral peak.
const FULL_SWAY = reference.window_quality.FULL_SWAY;
export const BEATS_ALIKE = reference.window_quality.BEATS_ALIKE; // least correlation of beats that are not noise
const UNKNOWN_SIGMA_BPM = reference.window_quality.UNKNOWN_SIGMA_BPM; // used when there is no tracked rate
const UNKNOWN_COHERENCE = reference.window_quality.UNKNOWN_COHERENCE; // used when faces fill the picture

/** One window of one face with its waveform. */
export interface Window {
  readonly samples: WindowSamples;
  readonly wave: Waveform; // of the method or network, without motion
  readonly method: string; // name of the method or network
}

/** Return the spectral peak, refined near the tracked rate if there is one, and the quality. */
export function assess(window: Window, tracked: TrackedRate | null): { peak: Peak | null; quality: Quality } {
  const { samples } = window;
  const peak = any(window.wave.valid) ? spectralPeak(window.wave, tracked?.bpm) : null;
  const bpm = peak?.bpm ?? 72; // features stay defined; gate() refuses a missing peak
  const amplitude = pulsation(samples.skin, bpm);
  const colour = meanColour(samples.skin);
  const quality: Quality = {
    snr_db: peak?.snrDb ?? -60,
    amplitude,
    background: background(samples, bpm, amplitude),
    motion: motion(samples, bpm),
    coverage: samples.coverage,
    face_px: samples.facePx,
    luma: 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2],
    clipped: samples.clipped,
    colourfulness: colourfulness(colour),
    fps: samples.fps,
    max_gap_s: samples.maxGapS,
    support: tracked?.support ?? 0,
    agreement: agreement(window, bpm),
    visible_db: visibleDb(samples.skin, bpm),
    background_coherence: coherence(samples, bpm),
    ...colourRatios(samples.skin, bpm),
    track_sigma_bpm: tracked?.sigmaBpm ?? UNKNOWN_SIGMA_BPM,
    change_bpm: rateChangeBpm(window.wave),
    ...beats(window, bpm),
  };
  return { peak, quality };
}

function meanColour(trace: RgbTrace): number[] {
  if (!any(trace.valid)) return [0, 0, 0];
  return [0, 1, 2].map((c) => median(column(trace.values, 3, c).filter((_, i) => trace.valid[i])));
}

function background(samples: WindowSamples, bpm: number, amplitude: number): number {
  const trace = samples.background;
  if (trace === null || !any(trace.valid)) return 0;
  const level = meanColour(trace).map((value) => Math.max(value, 1));
  const relative = trace.values.map((value, i) => value / level[i % 3]);
  const line = sharedLine(relative, 3, trace.fps, bpm, trace.valid, Math.max(amplitude, 1e-6));
  return line * inPhase(samples.skin, trace, bpm);
}

function coherence(samples: WindowSamples, bpm: number): number {
  if (samples.background === null || !any(samples.background.valid)) return UNKNOWN_COHERENCE;
  return backgroundCoherence(samples.skin, samples.background, bpm);
}

function motion(samples: WindowSamples, bpm: number): number {
  if (samples.centre === null) return 0;
  return sharedLine(samples.centre, 2, samples.skin.fps, bpm, samples.skin.valid, FULL_SWAY);
}

/** Share of the peak in a second method on the raw colours; a network can produce a pulse from any input. */
function agreement(window: Window, bpm: number): number {
  if (!any(window.samples.skin.valid)) return 0;
  const wave = checkWave(window);
  return sharedLine(wave.values, 1, wave.fps, bpm, wave.valid);
}

function checkWave({ samples, method }: Window): Waveform {
  const raw = (method === "pos" ? chrom : pos).extract(samples.skin);
  return samples.centre === null ? raw : removeMotion(raw, samples.centre);
}

/** Return the features of the beats of the wave and of the wave that checks it. */
function beats(window: Window, bpm: number): Pick<Quality, "beat_bpm" | "beat_difference_bpm" | "beat_spread" | "beat_match"> {
  const seen = any(window.samples.skin.valid);
  const first = seen ? rhythm(window.wave, bpm) : null;
  const second = seen ? rhythm(checkWave(window), bpm) : null;
  if (first === null || second === null) return { beat_bpm: 0, beat_difference_bpm: 20, beat_spread: 0.5, beat_match: 0 };
  return {
    beat_bpm: (first.bpm + second.bpm) / 2,
    beat_difference_bpm: Math.abs(first.bpm - second.bpm),
    beat_spread: (first.spread + second.spread) / 2,
    beat_match: Math.min(first.match, second.match),
  };
}
