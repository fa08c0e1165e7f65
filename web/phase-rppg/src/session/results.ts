/** Events of a session; a port of session/results.py. */

import type { Peak } from "../signal/rate.js";
import type { Quality, Reading, Waveform } from "../types.js";

/** One face in one window: the reading and its basis. */
export interface WindowResult {
  readonly kind: "window";
  readonly face: number;
  readonly startS: number;
  readonly endS: number;
  readonly reading: Reading;
  readonly peak: Peak | null; // the spectral peak, shown or refused
  readonly quality: Quality;
  readonly spectrum: readonly number[]; // power at each rate of GRID_BPM, for display
}

/** The next part of the waveform of a face, final. */
export interface WavePiece {
  readonly kind: "wave";
  readonly face: number;
  readonly wave: Waveform;
}

/** A face appeared, was lost, returned, or its track ended. */
export interface FaceEvent {
  readonly kind: "face";
  readonly face: number;
  readonly tS: number;
  readonly change: "appeared" | "lost" | "returned" | "ended";
}

export type Event = WindowResult | WavePiece | FaceEvent;
