/** Value types; a port of types.py. Names carry units, comments carry shapes. */

import type { texts } from "./data.js";

export type Reason = keyof typeof texts.reasons;

/** x, y, width, height in pixels. */
export type Box = readonly [number, number, number, number];
export type Point = readonly [number, number];

/** Pixels as a canvas gives them: (H,W,4) u8, alpha unused. */
export interface Picture {
  readonly rgba: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** The mean colour of the skin over time, on a uniform clock. */
export interface RgbTrace {
  readonly values: Float64Array; // (T,3) 0–255
  readonly fps: number;
  readonly startS: number;
  readonly valid: Uint8Array; // (T,)
}

/** A pulse waveform or another scalar signal on a uniform clock; the upstroke is positive. */
export interface Waveform {
  readonly values: Float64Array; // (T,)
  readonly fps: number;
  readonly startS: number;
  readonly valid: Uint8Array; // (T,)
}

/** Quality features of one window, the input of the gate. Every field is finite. */
export interface Quality {
  readonly snr_db: number;
  readonly amplitude: number;
  readonly background: number;
  readonly motion: number;
  readonly coverage: number;
  readonly face_px: number;
  readonly luma: number;
  readonly clipped: number;
  readonly colourfulness: number;
  readonly fps: number;
  readonly max_gap_s: number;
  readonly support: number;
  readonly agreement: number;
  readonly visible_db: number;
  readonly background_coherence: number;
  readonly red: number;
  readonly blue: number;
  readonly track_sigma_bpm: number;
  readonly change_bpm: number;
  readonly beat_bpm: number;
  readonly beat_difference_bpm: number;
  readonly beat_spread: number;
  readonly beat_match: number;
}

export interface Estimate {
  readonly bpm: number;
  readonly low: number;
  readonly high: number;
  readonly pOk: number; // P(|error| ≤ 5 bpm) if the face is alive
  readonly pAlive?: number; // P(a living pulse causes the peak)
  readonly startS: number;
  readonly endS: number;
}

export interface NoReading {
  readonly reason: Reason;
  readonly startS: number;
  readonly endS: number;
  readonly pOk: number;
  readonly pAlive?: number;
  readonly probableBpm?: number; // a likely rate that the gate refused
}

export type Reading = Estimate | NoReading;

export const isEstimate = (reading: Reading): reading is Estimate => "bpm" in reading;
