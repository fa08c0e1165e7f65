/** Past results in this browser's IndexedDB, if the user wants them: numbers only, never pictures. */

import type { Result } from "phase-rppg";
import { condensed, type Statistics, statistics, type TrendPoint, trendOf } from "./statistics";

const DATABASE = "phase-live";
const STORE = "measurements";
const TREND_POINTS = 240;

export interface Entry {
  readonly id: number; // milliseconds since 1970 when the measurement ended
  readonly source: string; // camera or the name of the file
  readonly method: string;
  readonly durationS: number;
  readonly numbers: Statistics;
  readonly trend: readonly TrendPoint[];
}

/** Return the entry of a result; null without a reading. */
export function entryOf(result: Result, face: number | null, when: Date): Entry | null {
  const chosen = result.faces.find(({ id }) => id === face) ?? result.faces[0];
  const numbers = chosen ? statistics(chosen) : null;
  if (numbers === null) return null;
  return { id: when.getTime(), source: result.video, method: result.method, durationS: result.durationS, numbers, trend: condensed(trendOf(chosen.windows), TREND_POINTS) };
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error ?? new Error("IndexedDB"));
  });
}

/** Opens the database at its first use; without a use nothing is created. */
export class History {
  private opened: Promise<IDBDatabase> | null = null;

  async add(entry: Entry): Promise<void> {
    await settled((await this.store("readwrite")).put(entry));
  }

  /** Return all entries, the newest first. */
  async list(): Promise<Entry[]> {
    const entries = await settled<Entry[]>((await this.store("readonly")).getAll());
    return entries.sort((a, b) => b.id - a.id);
  }

  async delete(id: number): Promise<void> {
    await settled((await this.store("readwrite")).delete(id));
  }

  /** Delete the whole database. */
  async deleteAll(): Promise<void> {
    (await this.opened?.catch(() => null))?.close();
    this.opened = null;
    await settled(indexedDB.deleteDatabase(DATABASE));
  }

  private async store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
    this.opened ??= this.open();
    return (await this.opened).transaction(STORE, mode).objectStore(STORE);
  }

  private async open(): Promise<IDBDatabase> {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    try {
      return await settled(request);
    } catch (error) {
      this.opened = null; // the next use tries again
      throw error;
    }
  }
}
