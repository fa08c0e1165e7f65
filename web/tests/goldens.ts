/** What Python answered; written by scripts/make-web-goldens (pytest names its own file by the environment). */

import { readFileSync } from "node:fs";
import { expect } from "vitest";
import type { Picture } from "../src/types";

const path = process.env.PHASE_GOLDENS ?? new URL("./goldens.json", import.meta.url);

export const goldens: any = JSON.parse(readFileSync(path, "utf8"));

export const floats = (values: number[] | number[][]): Float64Array => Float64Array.from((values as number[]).flat(4));
export const flags = (values: number[]): Uint8Array => Uint8Array.from(values);

/** Rows of [r, g, b] as a canvas would give them. */
export function picture(rgb: number[][][]): Picture {
  const [height, width] = [rgb.length, rgb[0].length];
  const rgba = new Uint8Array(width * height * 4).fill(255);
  rgb.forEach((row, y) => row.forEach((pixel, x) => rgba.set(pixel, (y * width + x) * 4)));
  return { rgba, width, height };
}

/** Every number within `tolerance`, relative to the largest of them. */
export function expectClose(got: ArrayLike<number>, want: ArrayLike<number>, tolerance = 1e-9): void {
  expect(got.length).toBe(want.length);
  const scale = Math.max(1e-12, ...Array.from(want, Math.abs));
  let worst = 0;
  for (let i = 0; i < want.length; i++) worst = Math.max(worst, Math.abs(got[i] - want[i]));
  expect(worst / scale).toBeLessThan(tolerance);
}
