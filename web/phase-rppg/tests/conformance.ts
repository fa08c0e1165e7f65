/** The conformance suite: inputs and outputs of Python, written by conformance/write.py, with its tolerances. */

import { readFileSync } from "node:fs";
import { expect } from "vitest";
import type { Picture } from "../src/types.js";

const FOLDER = new URL("../../../conformance/", import.meta.url);
const load = (name: string): any => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));

export const index: any = load("index.json");
/** The vectors of every stage. */
export const suite: any = Object.fromEntries(Object.entries<any>(index.stages).map(([name, { file }]) => [name, load(file)]));

/** The largest difference that the suite allows. */
export function tolerance(stage: string, of: string): number {
  const found = index.stages[stage]?.tolerance[of];
  if (found === undefined) throw new Error(`the suite has no tolerance for ${of} of ${stage}`);
  return found;
}

export const floats = (values: number[] | number[][]): Float64Array => Float64Array.from((values as number[]).flat(4));
export const flags = (values: number[]): Uint8Array => Uint8Array.from(values);

/** The bytes of a picture (H,W,3). */
export const bytes = ({ rgb }: { rgb: string }): Uint8Array => Uint8Array.from(Buffer.from(rgb, "base64"));

/** A picture as a canvas would give it. */
export function picture(stored: { height: number; width: number; rgb: string }): Picture {
  const { height, width } = stored;
  const rgba = new Uint8Array(width * height * 4).fill(255);
  bytes(stored).forEach((value, i) => (rgba[Math.floor(i / 3) * 4 + (i % 3)] = value));
  return { rgba, width, height };
}

/** Every number within `limit`, relative to the largest of them. */
export function expectClose(got: ArrayLike<number>, want: ArrayLike<number>, limit = 1e-9): void {
  expect(got.length).toBe(want.length);
  const scale = Math.max(1e-12, ...Array.from(want, Math.abs));
  let worst = 0;
  for (let i = 0; i < want.length; i++) worst = Math.max(worst, Math.abs(got[i] - want[i]));
  expect(worst / scale).toBeLessThan(limit);
}

/** Every number within `limit`. */
export function expectNear(got: ArrayLike<number>, want: ArrayLike<number>, limit: number, what = ""): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) expect(Math.abs(got[i] - want[i]), what).toBeLessThanOrEqual(limit);
}
