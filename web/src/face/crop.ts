/** Square pictures of a face, by exact area averaging; the twin of face/crop.py. */

import { rint } from "../signal/arrays";
import type { Box, Picture } from "../types";

export const CROP_SCALE = 1.25; // side of the crop over the longer side of the detector's box

/** The square around a face box that networks and methods look at. */
export function square(box: Box): Box {
  const [x, y, width, height] = box;
  const side = CROP_SCALE * Math.max(width, height);
  return [x + (width - side) / 2, y + (height - side) / 2, side, side];
}

/** Round 0–255 values to bytes. */
export function toBytes(picture: Float32Array): Uint8Array {
  const bytes = new Uint8Array(picture.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = rint(picture[i]);
  return bytes;
}

/** A prepared crop: the same box out of many pictures of the same size. */
export class AreaCrop {
  private readonly rows: Overlaps;
  private readonly columns: Overlaps;

  constructor(readonly box: Box, readonly size: number, width: number, height: number) {
    this.columns = overlaps(box[0], box[2], size, width);
    this.rows = overlaps(box[1], box[3], size, height);
  }

  /** The crop as (S,S,3) f32, not rounded. */
  mean(picture: Picture): Float32Array {
    const { size, rows, columns } = this;
    const out = new Float32Array(size * size * 3);
    const line = new Float64Array(columns.count * 3); // one row of cells, before its columns are joined
    for (let i = 0; i < size; i++) {
      line.fill(0);
      for (let k = rows.from[i]; k < rows.to[i]; k++) {
        const weight = rows.weights[i * rows.count + k];
        let at = ((rows.first + k) * picture.width + columns.first) * 4;
        for (let j = 0; j < line.length; j += 3, at += 4) {
          line[j] += weight * picture.rgba[at];
          line[j + 1] += weight * picture.rgba[at + 1];
          line[j + 2] += weight * picture.rgba[at + 2];
        }
      }
      for (let j = 0; j < size; j++) {
        let r = 0;
        let g = 0;
        let b = 0;
        for (let k = columns.from[j]; k < columns.to[j]; k++) {
          const weight = columns.weights[j * columns.count + k];
          r += weight * line[3 * k];
          g += weight * line[3 * k + 1];
          b += weight * line[3 * k + 2];
        }
        const at = (i * size + j) * 3;
        out[at] = r;
        out[at + 1] = g;
        out[at + 2] = b;
      }
    }
    return out;
  }
}

interface Overlaps {
  readonly first: number; // the first pixel that any cell covers
  readonly count: number; // how many pixels are covered
  readonly weights: Float32Array; // (size,count)
  readonly from: Int32Array; // (size,) the part of each row that is not zero
  readonly to: Int32Array;
}

/** Which pixels of one axis `size` cells cover, and the weight of each. */
function overlaps(start: number, length: number, size: number, pixels: number): Overlaps {
  const first = Math.min(Math.max(Math.floor(start), 0), pixels - 1);
  const last = Math.max(Math.min(Math.ceil(start + length), pixels), first + 1);
  const count = last - first;
  const weights = new Float32Array(size * count);
  const from = new Int32Array(size).fill(count);
  const to = new Int32Array(size);
  for (let i = 0; i < size; i++) {
    const cellLow = start + (length * i) / size;
    const cellHigh = start + (length * (i + 1)) / size;
    for (let k = 0; k < count; k++) {
      const low = k === 0 ? -Infinity : first + k; // the outermost pixels go on for ever
      const high = k === count - 1 ? Infinity : first + k + 1;
      const weight = (Math.min(cellHigh, high) - Math.max(cellLow, low)) * (size / length);
      if (weight <= 0) continue;
      weights[i * count + k] = weight;
      from[i] = Math.min(from[i], k);
      to[i] = k + 1;
    }
  }
  return { first, count, weights, from, to };
}
