/** From a session's events to one result per face; the twin of the collecting half of measurement/offline.py. */

import { interp, median, sum } from "../signal/arrays";
import { hrv, type Hrv } from "../signal/hrv";
import { beatJitterS } from "../signal/beatJitter";
import { findBeats } from "../signal/rate";
import { type Estimate, isEstimate, type NoReading, type Reading, type Reason, type Waveform } from "../types";
import type { Event, WindowResult } from "./results";

const MIN_SEEN_S = 2; // a face that was seen for less is reported only when there is no other

/** One person: a summary, and everything over time. */
export interface FaceResult {
  readonly id: number;
  readonly summary: Reading;
  readonly windows: readonly WindowResult[];
  readonly wave: Waveform; // valid=0 where the face was not seen
  readonly beatsS: readonly number[];
  readonly hrv: Hrv | null; // null when the beats do not allow it
  readonly facePx: number;
  readonly seenS: number;
}

/** Gathers what a session says: small results per window, and the one-dimensional wave. */
export class Collector {
  private readonly windows = new Map<number, WindowResult[]>();
  private readonly pieces = new Map<number, Waveform[]>();

  take(events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === "window") append(this.windows, event.face, event);
      if (event.kind === "wave") append(this.pieces, event.face, event.wave);
    }
  }

  get isEmpty(): boolean {
    return this.windows.size === 0;
  }

  /** The faces, largest (by area and time) first. */
  faces(): FaceResult[] {
    const found = [...this.windows.keys()].filter((face) => this.pieces.has(face)).map((face) => this.face(face));
    const weight = (face: FaceResult): number => face.facePx ** 2 * face.seenS;
    found.sort((a, b) => weight(b) - weight(a) || a.id - b.id);
    const longEnough = found.filter((face) => face.seenS >= MIN_SEEN_S);
    return longEnough.length > 0 ? longEnough : found.slice(0, 1);
  }

  private face(face: number): FaceResult {
    const windows = this.windows.get(face)!;
    const wave = joined(this.pieces.get(face)!);
    const beatsS = beats(wave, windows);
    return {
      id: face, summary: summarise(windows), windows, wave, beatsS, hrv: hrv(beatsS, beatJitterS(wave, beatsS)),
      facePx: median(windows.map((window) => window.quality.face_px)), seenS: sum(wave.valid) / wave.fps,
    };
  }
}

/** One reading for all windows of a face: the middle of those that are believed, weighted by `p_ok`. */
export function summarise(windows: readonly WindowResult[]): Reading {
  const startS = windows[0].startS;
  const endS = windows[windows.length - 1].endS;
  const shown = windows.map((window) => window.reading).filter(isEstimate);
  if (shown.length === 0) {
    const refused = windows.map((window) => window.reading as NoReading);
    const counts = new Map<Reason, number>();
    for (const { reason } of refused) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    const [reason] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
    return { reason, startS, endS, pOk: Math.max(...refused.map((reading) => reading.pOk)) };
  }
  const of = (pick: (reading: Estimate) => number): number => middle(shown.map(pick), shown.map((r) => Math.max(r.pOk, 1e-6)));
  const bpm = of((reading) => reading.bpm);
  return {
    bpm, low: Math.min(of((reading) => reading.low), bpm), high: Math.max(of((reading) => reading.high), bpm),
    pOk: shown.reduce((total, reading) => total + reading.pOk, 0) / shown.length, startS, endS,
  };
}

function append<T>(lists: Map<number, T[]>, key: number, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** One wave on one clock; what lies between two pieces was not seen. */
function joined(pieces: readonly Waveform[]): Waveform {
  const { fps, startS } = pieces[0];
  const starts = pieces.map((piece) => Math.round((piece.startS - startS) * fps));
  const count = Math.max(...pieces.map((piece, i) => starts[i] + piece.values.length));
  const values = new Float64Array(count);
  const valid = new Uint8Array(count);
  pieces.forEach((piece, i) => {
    values.set(piece.values, starts[i]);
    valid.set(piece.valid, starts[i]);
  });
  return { values, fps, startS, valid };
}

/** Beats where there is a reading, looked for near the rate that was read. */
function beats(wave: Waveform, windows: readonly WindowResult[]): number[] {
  const shown = windows.map((window) => window.reading).filter(isEstimate);
  if (shown.length === 0) return [];
  const middleS = shown.map((reading) => (reading.startS + reading.endS) / 2);
  const rates = shown.map((reading) => reading.bpm);
  const bpm = Float64Array.from(wave.values, (_, i) => interp(wave.startS + i / wave.fps, middleS, rates));
  const valid = new Uint8Array(wave.valid.length);
  for (const { startS, endS } of shown) {
    const [low, high] = [startS, endS].map((t) => Math.max(0, Math.round((t - wave.startS) * wave.fps)));
    valid.set(wave.valid.subarray(low, high), Math.min(low, valid.length));
  }
  return findBeats({ ...wave, valid }, bpm);
}

/** Weighted median. */
function middle(values: readonly number[], weights: readonly number[]): number {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const half = 0.5 * sum(weights);
  let reached = 0;
  return values[order.find((i) => (reached += weights[i]) >= half) ?? order[order.length - 1]];
}
