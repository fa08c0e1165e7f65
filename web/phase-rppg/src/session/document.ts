/** A result as JSON and CSV, as in `phase measure`; a port of report/document.py. */

import { isEstimate, type Reading } from "../types.js";
import type { FaceResult } from "./offline.js";
import type { WindowResult } from "./results.js";

const SCHEMA_VERSION = 3; // of docs/measure.schema.json

const CSV_COLUMNS = ["video", "face", "start_s", "end_s", "bpm", "low", "high", "p_ok", "p_alive", "snr_db", "reason"] as const;

export interface Result {
  readonly video: string;
  readonly method: string;
  readonly durationS: number;
  readonly faces: readonly FaceResult[];
  readonly warnings: readonly string[];
}

/** Return the JSON document of one video or session. */
export function document(result: Result): Record<string, unknown> {
  const found = {
    schema_version: SCHEMA_VERSION,
    video: result.video,
    duration_s: round(result.durationS, 3),
    method: result.method,
    faces: result.faces.map((face) => ({
      id: face.id,
      summary: { bpm: bpm(face.summary), ...interval(face.summary), p_ok: round(face.summary.pOk, 4), p_alive: alive(face.summary), reason: reason(face.summary) },
      hrv: face.hrv && Object.fromEntries(Object.entries(face.hrv).map(([name, value]) => [name, value === null ? null : round(value, 3)])),
      windows: face.windows.map(windowRow),
    })),
    warnings: [...result.warnings],
  };
  return result.faces.length > 0 ? found : { ...found, reason: "NO_FACE" };
}

/** Return CSV with one row per window of every face, with a header. */
export function csvText(result: Result): string {
  const rows = result.faces.flatMap((face) =>
    face.windows.map((window): Record<string, unknown> => ({ video: result.video, face: face.id, ...windowRow(window) })));
  const lines = rows.map((row) => CSV_COLUMNS.map((name) => cell(row[name])).join(","));
  return [CSV_COLUMNS.join(","), ...lines].join("\n") + "\n";
}

function windowRow(window: WindowResult): Record<string, number | string | null> {
  return {
    start_s: round(window.startS, 3),
    end_s: round(window.endS, 3),
    bpm: bpm(window.reading),
    ...interval(window.reading),
    p_ok: round(window.reading.pOk, 4),
    p_alive: alive(window.reading),
    snr_db: window.peak ? round(window.peak.snrDb, 2) : null,
    reason: reason(window.reading),
  };
}

const bpm = (reading: Reading): number | null => (isEstimate(reading) ? round(reading.bpm, 2) : null);

const interval = (reading: Reading): { low: number | null; high: number | null } =>
  isEstimate(reading) ? { low: round(reading.low, 2), high: round(reading.high, 2) } : { low: null, high: null };

const alive = (reading: Reading): number => round(reading.pAlive ?? 0, 4);

const reason = (reading: Reading): string | null => (isEstimate(reading) ? null : reading.reason);

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** Quote a cell that contains a comma, a quote or a line break. */
function cell(value: unknown): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
