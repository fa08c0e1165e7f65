/** Square crops of a face by exact area averaging; a port of face/crop.py. */

import { reference } from "../data.js";
import { clip, rint } from "../signal/arrays.js";
import type { Box, Picture } from "../types.js";

export const CROP_SCALE = reference.crop.CROP_SCALE; // side of the crop over the longer side of the detector's box
export const CROP_PX = reference.crop.CROP_PX; // side of the crop for skin mask and registration

/** Return the square crop around a face box. */
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

/** A crop of one box from pictures of one size. The constructor is cheap, because almost every frame needs a new crop. */
export class AreaCrop {
  private readonly rows: Overlaps;
  private readonly columns: Overlaps;

  constructor(readonly box: Box, readonly size: number, width: number, height: number) {
    this.columns = overlaps(box[0], box[2], size, width);
    this.rows = overlaps(box[1], box[3], size, height);
  }

  /** Return the crop (S,S,3) f32, not rounded. */
  mean(picture: Picture): Float32Array {
    const { size, rows, columns } = this;
    const { rgba, width } = picture;
    const out = new Float32Array(size * size * 3);
    const line = new Float64Array((columns.to[size - 1] - columns.from[0]) * 3); // one row of cells at full horizontal resolution
    for (let i = 0; i < size; i++) {
      line.fill(0);
      for (let y = rows.from[i], w = i * rows.most; y < rows.to[i]; y++, w++) {
        const weight = rows.weights[w];
        let at = (y * width + columns.from[0]) * 4;
        for (let j = 0; j < line.length; j += 3, at += 4) {
          line[j] += weight * rgba[at];
          line[j + 1] += weight * rgba[at + 1];
          line[j + 2] += weight * rgba[at + 2];
        }
      }
      for (let j = 0; j < size; j++) {
        let r = 0;
        let g = 0;
        let b = 0;
        let from = (columns.from[j] - columns.from[0]) * 3;
        for (let x = columns.from[j], w = j * columns.most; x < columns.to[j]; x++, w++, from += 3) {
          const weight = columns.weights[w];
          r += weight * line[from];
          g += weight * line[from + 1];
          b += weight * line[from + 2];
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
  readonly from: Int32Array; // (size,) first pixel of each cell
  readonly to: Int32Array; // (size,) one past the last pixel of each cell
  readonly most: number; // largest number of pixels of a cell
  readonly weights: Float32Array; // (size,most) weights of these pixels
}

/** Return the pixels that each of `size` cells covers along one axis, and their weights. */
function overlaps(start: number, length: number, size: number, pixels: number): Overlaps {
  const first = Math.min(Math.max(Math.floor(start), 0), pixels - 1);
  const last = Math.max(Math.min(Math.ceil(start + length), pixels), first + 1) - 1;
  const most = Math.ceil(length / size) + 2;
  const weights = new Float32Array(size * most);
  const from = new Int32Array(size);
  const to = new Int32Array(size);
  for (let i = 0; i < size; i++) {
    const cellLow = start + (length * i) / size;
    const cellHigh = start + (length * (i + 1)) / size;
    from[i] = clip(Math.floor(cellLow), first, last);
    to[i] = clip(Math.ceil(cellHigh), first + 1, last + 1);
    for (let pixel = from[i], w = i * most; pixel < to[i]; pixel++, w++) {
      const low = pixel === first ? -Infinity : pixel; // the outermost pixels are repeated
      const high = pixel === last ? Infinity : pixel + 1;
      weights[w] = Math.max(0, Math.min(cellHigh, high) - Math.max(cellLow, low)) * (size / length);
    }
  }
  return { from, to, most, weights };
}
