/** Notices that a crop shows another face from one frame to the next; a port of face/face_change.py. */

import { reference } from "../data.js";

const SIDE = reference.face_change.SIDE; // cells of the compared pictures
const FACE = { top: 2, bottom: 7, left: 3, right: 6 }; // rows and columns that always show skin
const NOISE_VARIANCE = reference.face_change.NOISE_VARIANCE; // in squared levels; a picture without contrast has no correlation to speak of
const DARK_LEVEL = reference.face_change.DARK_LEVEL; // colour ratios of darker pictures are noise
const COLOUR_WEIGHT = reference.face_change.COLOUR_WEIGHT;
// The limit of the difference grows with the time between two frames, because heads move.
const LIMIT = reference.face_change.LIMIT;
const LIMIT_PER_S = reference.face_change.LIMIT_PER_S;
const LIMIT_GROWTH_S = reference.face_change.LIMIT_GROWTH_S;

/** Compares every crop with the last one that showed the tracked face. */
export class FaceChange {
  changed = false; // whether the latest crop shows something else
  private known: Float64Array;

  constructor(picture: Float32Array, private readonly size: number) {
    this.known = thumbnail(picture, size);
  }

  /** Compare the crop (S,S,3) of the next frame, which shows the same region. */
  update(picture: Float32Array, elapsedS: number): void {
    const now = thumbnail(picture, this.size);
    const limit = LIMIT + LIMIT_PER_S * Math.min(elapsedS, LIMIT_GROWTH_S);
    this.changed = difference(this.known, now) > limit;
    if (!this.changed) this.known = now;
  }

  /** Continue with another region of the latest frame. */
  setRegion(picture: Float32Array): void {
    if (!this.changed) this.known = thumbnail(picture, this.size);
  }
}

/** Return how different two pictures (9,9,3) are; 0 for the same face, up to about 2. */
export function difference(before: Float64Array, now: Float64Array): number {
  const a = centredLuma(before);
  const b = centredLuma(now);
  let [aa, bb, ab] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  const scale = Math.sqrt((aa / a.length) * (bb / b.length));
  const shape = (scale - ab / a.length) / (scale + NOISE_VARIANCE);
  const [old, fresh] = [colourRatios(before), colourRatios(now)];
  return shape + COLOUR_WEIGHT * Math.max(Math.abs(fresh[0] - old[0]), Math.abs(fresh[1] - old[1]));
}

/** Return means of blocks of a crop, (S,S,3) → (9,9,3). */
export function thumbnail(picture: Float32Array, size: number): Float64Array {
  const block = Math.max(1, Math.floor(size / SIDE));
  const out = new Float64Array(SIDE * SIDE * 3);
  for (let y = 0; y < block * SIDE; y++)
    for (let x = 0; x < block * SIDE; x++)
      for (let c = 0; c < 3; c++)
        out[(Math.floor(y / block) * SIDE + Math.floor(x / block)) * 3 + c] += picture[(y * size + x) * 3 + c] / block ** 2;
  return out;
}

function centredLuma(picture: Float64Array): Float64Array {
  const luma = Float64Array.from({ length: SIDE * SIDE }, (_, i) => (picture[3 * i] + picture[3 * i + 1] + picture[3 * i + 2]) / 3);
  const mean = luma.reduce((total, value) => total + value, 0) / luma.length;
  return luma.map((value) => value - mean);
}

/** Return the logarithms of red and blue over green in the middle of the face. */
function colourRatios(picture: Float64Array): [number, number] {
  const colour = [0, 0, 0];
  const count = (FACE.bottom - FACE.top) * (FACE.right - FACE.left);
  for (let y = FACE.top; y < FACE.bottom; y++)
    for (let x = FACE.left; x < FACE.right; x++)
      for (let c = 0; c < 3; c++) colour[c] += picture[(y * SIDE + x) * 3 + c] / count;
  const [red, green, blue] = colour.map((value) => value + DARK_LEVEL);
  return [Math.log(red / green), Math.log(blue / green)];
}
