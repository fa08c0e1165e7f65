/** Results per face from the events of a session; a port of measurement/result_buffer.py and measurement/summary.py. */

import { reference } from "../data.js";
import { interp, median, sum } from "../signal/arrays.js";
import { hrv, type Hrv } from "../signal/hrv.js";
import { beatJitterS } from "../signal/beatJitter.js";
import { refineBeats } from "../signal/beatTiming.js";
import { findBeats } from "../signal/rate.js";
import { type Estimate, isEstimate, type NoReading, type Reading, type Reason, type Waveform } from "../types.js";
import type { Calibration } from "./calibration.js";
import { inHindsight } from "./gate.js";
import type { Event, WindowResult } from "./results.js";

const MIN_SEEN_S = reference.summary.MIN_SEEN_S; // a face visible for less time is reported only if it is the only one

/** One face: summary, windows, waveform, beats. */
export interface FaceResult {
  readonly id: number;
  readonly summary: Reading;
  readonly windows: readonly WindowResult[];
  readonly wave: Waveform; // valid=0 where the face was not visible
  readonly beatsS: readonly number[];
  readonly hrv: Hrv | null; // null when the beats do not allow it
  readonly facePx: number;
  readonly seenS: number;
}

/** Collects the windows and waveform pieces of a session. */
export class Collector {
  private readonly windows = new Map<number, WindowResult[]>();
  private readonly pieces = new Map<number, Waveform[]>();
  private readonly lostS = new Map<number, number[]>();

  /** With `hindsight`, windows that a later confident window confirms get a reading, as for a file. */
  constructor(private readonly hindsight: Calibration | null = null) {}

  take(events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === "window") append(this.windows, event.face, event);
      if (event.kind === "wave") append(this.pieces, event.face, event.wave);
      if (event.kind === "face" && event.change === "lost") append(this.lostS, event.face, event.tS);
    }
  }

  get isEmpty(): boolean {
    return this.windows.size === 0;
  }

  /** Return the faces, the largest by area and time first. */
  faces(): FaceResult[] {
    const found = [...this.windows.keys()].filter((face) => this.pieces.has(face)).map((face) => this.face(face));
    const weight = (face: FaceResult): number => face.facePx ** 2 * face.seenS;
    found.sort((a, b) => weight(b) - weight(a) || a.id - b.id);
    const longEnough = found.filter((face) => face.seenS >= MIN_SEEN_S);
    return longEnough.length > 0 ? longEnough : found.slice(0, 1);
  }

  private face(face: number): FaceResult {
    const all = this.windows.get(face)!;
    const windows = this.hindsight ? inHindsight(all, this.hindsight, this.lostS.get(face) ?? []) : all;
    const wave = joined(this.pieces.get(face)!);
    const beatsS = beats(wave, windows);
    return {
      id: face, summary: summarise(windows), windows, wave, beatsS, hrv: hrv(beatsS, beatJitterS(wave, beatsS)),
      facePx: median(windows.map((window) => window.quality.face_px)), seenS: sum(wave.valid) / wave.fps,
    };
  }
}

/** Return one reading for all windows of a face: the median of the shown ones, weighted by `p_ok`. */
export function summarise(windows: readonly WindowResult[]): Reading {
  const startS = windows[0].startS;
  const endS = windows[windows.length - 1].endS;
  const shown = windows.map((window) => window.reading).filter(isEstimate);
  if (shown.length === 0) {
    const refused = windows.map((window) => window.reading as NoReading);
    const counts = new Map<Reason, number>();
    for (const { reason } of refused) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    const [reason] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
    const largest = (pick: (reading: NoReading) => number): number => Math.max(...refused.map(pick));
    return { reason, startS, endS, pOk: largest((reading) => reading.pOk), pAlive: largest((reading) => reading.pAlive ?? 0) };
  }
  const of = (pick: (reading: Estimate) => number): number => weightedMedian(shown.map(pick), shown.map((r) => Math.max(r.pOk, 1e-6)));
  const average = (pick: (reading: Estimate) => number): number => shown.reduce((total, reading) => total + pick(reading), 0) / shown.length;
  const bpm = of((reading) => reading.bpm);
  return {
    bpm, low: Math.min(of((reading) => reading.low), bpm), high: Math.max(of((reading) => reading.high), bpm),
    pOk: average((reading) => reading.pOk), pAlive: average((reading) => reading.pAlive ?? 1), startS, endS,
  };
}

function append<T>(lists: Map<number, T[]>, key: number, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Join waveform pieces; samples between two pieces are invalid. */
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

/** Find beats in shown windows, near their rates. */
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
  const part = { ...wave, valid };
  return refineBeats(part, findBeats(part, bpm));
}

/** Weighted median. */
function weightedMedian(values: readonly number[], weights: readonly number[]): number {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const half = 0.5 * sum(weights);
  let reached = 0;
  return values[order.find((i) => (reached += weights[i]) >= half) ?? order[order.length - 1]];
}
