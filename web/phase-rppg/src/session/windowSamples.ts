/** The samples of one face during one window; a port of session/window_samples.py. */

import type { RgbTrace, Waveform } from "../types.js";

/** Samples of one face during one window; all signals have the time axis of `skin`. */
export interface WindowSamples {
  readonly skin: RgbTrace; // mean colour of the skin
  readonly background: RgbTrace | null; // mean colour outside all faces; null if faces fill the picture
  readonly centre: Float64Array | null; // (T,2) centre of the face in face widths; null if unknown
  readonly coverage: number; // 0–1: share of the window in which the face was seen
  readonly facePx: number; // median face width
  readonly clipped: number; // 0–1: share of overexposed skin
  readonly fps: number; // true frame rate
  readonly maxGapS: number; // longest pause between two frames
  readonly endS: number;
  readonly wave: Waveform | null; // output of the network, if there is one
}

/** The samples of a window extended into the time before and after it. */
export interface WindowContext {
  readonly samples: WindowSamples;
  readonly extraS: number; // seconds in which the face was seen outside the window
}
