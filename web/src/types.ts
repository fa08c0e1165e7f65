/** The values that flow through the page; the twin of types.py. Units are in the names, shapes in the comments. */

export type Reason =
  | "NO_FACE" | "FACE_LOST" | "FACE_TOO_SMALL" | "NO_PULSE" | "LIGHT_FLICKER" | "MOTION"
  | "TOO_SHORT" | "TOO_DARK" | "CLIPPED" | "LOW_FPS" | "BAD_TIMESTAMPS" | "NO_COLOUR";

/** x, y, width, height in pixels */
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

/** A pulse wave (or any scalar signal) on a uniform clock; upstroke positive. */
export interface Waveform {
  readonly values: Float64Array; // (T,)
  readonly fps: number;
  readonly startS: number;
  readonly valid: Uint8Array; // (T,)
}

/** What is known about one window before it is decided upon. Every field is finite. */
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
}

export interface Estimate {
  readonly bpm: number;
  readonly low: number;
  readonly high: number;
  readonly pOk: number;
  readonly startS: number;
  readonly endS: number;
}

export interface NoReading {
  readonly reason: Reason;
  readonly startS: number;
  readonly endS: number;
  readonly pOk: number;
}

export type Reading = Estimate | NoReading;

export const isEstimate = (reading: Reading): reading is Estimate => "bpm" in reading;
