/** What a session tells while it runs; the twin of session/results.py. */

import type { Peak } from "../signal/rate";
import type { Quality, Reading, Waveform } from "../types";

/** One face during one window: the reading, and what it rests on. */
export interface WindowResult {
  readonly kind: "window";
  readonly face: number;
  readonly startS: number;
  readonly endS: number;
  readonly reading: Reading;
  readonly peak: Peak | null; // the line that was found, believed or not
  readonly quality: Quality;
  readonly spectrum: readonly number[]; // power at each whole bpm of track.GRID_BPM, for the eye
}

/** The next stretch of a face's pulse wave, final. */
export interface WavePiece {
  readonly kind: "wave";
  readonly face: number;
  readonly wave: Waveform;
}

/** A face came, was lost, came back, or is no longer followed. */
export interface FaceEvent {
  readonly kind: "face";
  readonly face: number;
  readonly tS: number;
  readonly change: "appeared" | "lost" | "returned" | "ended";
}

export type Event = WindowResult | WavePiece | FaceEvent;
