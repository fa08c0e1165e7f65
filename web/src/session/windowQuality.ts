/** What one window shows before the gate; the twin of session/window_quality.py. */

import * as chrom from "../methods/chrom";
import * as pos from "../methods/pos";
import { any, column, median } from "../signal/arrays";
import { withoutMotion } from "../signal/motionRemoval";
import { backgroundCoherence, colourfulness, inPhase, pulsation, red, sharedLine, visibleDb } from "../signal/quality";
import { type Peak, spectralPeak } from "../signal/rate";
import type { Tracked } from "../signal/rateTracking";
import type { Quality, RgbTrace, Waveform } from "../types";

// A face that sways by this share of its width at the pulse's rate can fake the whole line.
const SWAY_FULL_SCALE = 0.01;
const UNKNOWN_COHERENCE = 0.3; // where faces fill the picture: the coherence is unknown

/** Everything known about one face during one window; all signals share the clock of `skin`. */
export interface Window {
  readonly wave: Waveform; // what the method or network made of it
  readonly skin: RgbTrace; // raw mean colour of the skin, before any method
  readonly background: RgbTrace | null; // mean colour beside the face; null when the face fills the picture
  readonly centre: Float64Array | null; // (T,2) centre of the face in face widths
  readonly method: string;
  readonly coverage: number; // 0–1
  readonly facePx: number; // median face width
  readonly clipped: number; // 0–1: share of skin pixels at the end of the range
  readonly fps: number; // true frame rate
  readonly maxGapS: number; // longest pause between two frames
}

/** The window's line, refined near the tracked rate if there is one, and its quality. */
export function assess(window: Window, tracked: Tracked | null): { peak: Peak | null; quality: Quality } {
  const peak = any(window.wave.valid) ? spectralPeak(window.wave, tracked?.bpm) : null;
  const bpm = peak?.bpm ?? 72; // features stay defined; gate() refuses a missing peak
  const amplitude = pulsation(window.skin, bpm);
  const colour = meanColour(window.skin);
  const quality: Quality = {
    snr_db: peak?.snrDb ?? -60,
    amplitude,
    background: background(window, bpm, amplitude),
    motion: motion(window, bpm),
    coverage: window.coverage,
    face_px: window.facePx,
    luma: 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2],
    clipped: window.clipped,
    colourfulness: colourfulness(colour),
    fps: window.fps,
    max_gap_s: window.maxGapS,
    support: tracked?.support ?? 0,
    agreement: agreement(window, bpm),
    visible_db: visibleDb(window.skin, bpm),
    background_coherence: coherence(window, bpm),
    red: red(window.skin, bpm),
  };
  return { peak, quality };
}

function meanColour(trace: RgbTrace): number[] {
  if (!any(trace.valid)) return [0, 0, 0];
  return [0, 1, 2].map((c) => median(column(trace.values, 3, c).filter((_, i) => trace.valid[i])));
}

function background(window: Window, bpm: number, amplitude: number): number {
  const trace = window.background;
  if (trace === null || !any(trace.valid)) return 0;
  const level = meanColour(trace).map((value) => Math.max(value, 1));
  const relative = trace.values.map((value, i) => value / level[i % 3]);
  const line = sharedLine(relative, 3, trace.fps, bpm, trace.valid, Math.max(amplitude, 1e-6));
  return line * inPhase(window.skin, trace, bpm);
}

function coherence(window: Window, bpm: number): number {
  if (window.background === null || !any(window.background.valid)) return UNKNOWN_COHERENCE;
  return backgroundCoherence(window.skin, window.background, bpm);
}

function motion(window: Window, bpm: number): number {
  if (window.centre === null) return 0;
  return sharedLine(window.centre, 2, window.skin.fps, bpm, window.skin.valid, SWAY_FULL_SCALE);
}

/** How much of the line a second method shows, from the raw colours alone: networks invent pulses. */
function agreement(window: Window, bpm: number): number {
  if (!any(window.skin.valid)) return 0;
  const raw = (window.method === "pos" ? chrom : pos).extract(window.skin);
  const wave = window.centre === null ? raw : withoutMotion(raw, window.centre);
  return sharedLine(wave.values, 1, wave.fps, bpm, wave.valid);
}
