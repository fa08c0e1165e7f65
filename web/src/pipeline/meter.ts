/** What one face shows in one frame: the colour of its skin, and how far it has moved; the twin of pipeline/meter.py. */

import { AreaCrop, square } from "../face/crop";
import { skinWeights } from "../face/skin";
import type { Track } from "../face/track";
import { clip, rint, sum } from "../signal/arrays";
import { solve } from "../signal/solve";
import type { Box, Picture } from "../types";
import { type Colour, Seam } from "./seam";

export const COLUMNS = ["red", "green", "blue", "x", "y", "face_px", "clipped"] as const;
export const CROP_PX = 36; // side of the picture from which the skin colour is taken

const MASK_EVERY = 4; // looks between two corrections of the skin weights of a face that keeps still
const MASK_MEMORY = 0.5; // how much of the old weights stays at each correction
const FULL = 248; // a cell this bright in any channel is clipped
const CLIP_EVERY = 8; // frames between two counts of clipped cells
const REACH = 3; // cells that a face may have moved since the crop was placed; farther is not followed

type Shift = readonly [right: number, down: number]; // in cells

/** Measures one track in every frame; holds a crop, weights and a reference picture, nothing that grows. */
export class Meter {
  picture: Float32Array; // (S,S,3) of the last frame
  shift = 0; // how far the face has moved since the crop was placed, in face widths
  private crop: AreaCrop;
  private weights: Float32Array; // (S,S), where the face was in the reference picture
  private now: Float32Array; // the same where the face is in the last frame
  private face: Box;
  private readonly seam: Seam;
  private place: readonly [number, number] = [0, 0]; // of the face at the reference picture, in face widths
  private clipped = 0;
  private frames = 0;
  private looks = 0;
  private reference: Float64Array = new Float64Array(0); // (S·S,) luma
  private rows: readonly Float32Array[] = []; // shift from luma

  constructor(track: Track, frame: Picture, readonly size: number = CROP_PX) {
    this.seam = new Seam(track.seenS);
    this.face = track.box;
    this.crop = new AreaCrop(square(track.box), size, frame.width, frame.height);
    this.picture = this.crop.mean(frame);
    this.weights = this.now = this.skin(track, this.picture);
    this.refer();
  }

  /** The square that is cut out. */
  get box(): Box {
    return this.crop.box;
  }

  /** The weights of the skin within that square, (S,S), sum 1. */
  get mask(): Float32Array {
    return this.now;
  }

  /** Take over what the detector found in this frame. */
  look(track: Track, frame: Picture): void {
    const moved = track.box.some((value, i) => value !== this.face[i]);
    this.looks += 1;
    if (!moved && this.looks % MASK_EVERY) return;
    let picture = this.crop.mean(frame);
    let shift = this.shiftOf(picture);
    const old = colourOf(picture, displaced(this.weights, this.size, shift));
    if (moved) {
      const [x, y] = this.widths(shift);
      this.place = [this.place[0] + x, this.place[1] + y];
      this.face = track.box;
      this.crop = new AreaCrop(square(track.box), this.size, frame.width, frame.height);
      picture = this.picture = this.crop.mean(frame);
      this.refer();
      shift = [0, 0];
    }
    const fresh = displaced(this.skin(track, picture), this.size, [-shift[0], -shift[1]]);
    this.weights = moved ? fresh : this.weights.map((w, i) => MASK_MEMORY * w + (1 - MASK_MEMORY) * fresh[i]);
    this.seam.join(old, colourOf(picture, displaced(this.weights, this.size, shift)));
  }

  /** One row of COLUMNS for this frame. */
  measure(frame: Picture, tS: number): number[] {
    const picture = (this.picture = this.crop.mean(frame));
    const shift = this.shiftOf(picture);
    this.now = displaced(this.weights, this.size, shift);
    if (this.frames % CLIP_EVERY === 0) {
      this.clipped = this.now.reduce((total, w, i) =>
        Math.max(picture[3 * i], picture[3 * i + 1], picture[3 * i + 2]) >= FULL ? total + w : total, 0);
    }
    this.frames += 1;
    const [x, y] = this.widths(shift);
    this.shift = Math.hypot(x, y);
    const colour = this.seam.scale(colourOf(picture, this.now), tS);
    return [...colour, this.place[0] + x, this.place[1] + y, this.face[2], this.clipped];
  }

  private skin(track: Track, picture: Float32Array): Float32Array {
    return skinWeights(picture, this.size, this.crop.box, track.landmarks, track.box);
  }

  /** Make the present picture the one against which motion is measured (Lucas and Kanade, one step). */
  private refer(): void {
    const { size } = this;
    const luma = blurred(lumaOf(this.picture), size);
    const reach = faceWindow(size);
    const basis = Array.from(luma, (value, i) => [-slope(luma, i, i % size, size, 1), -slope(luma, i, Math.floor(i / size), size, size), value, 1]);
    const gram = new Float64Array(16);
    basis.forEach((row, i) => {
      if (reach[i]) for (let a = 0; a < 4; a++) for (let b = 0; b < 4; b++) gram[4 * a + b] += row[a] * row[b];
    });
    const trace = gram[0] + gram[5] + gram[10] + gram[15];
    [1e-3, 1e-3, 1e-6, 1e-6].forEach((ridge, a) => (gram[5 * a] += ((1e-3 * trace) / 4) * ridge + 1e-6));
    this.rows = [0, 1].map((axis) => {
      const inverse = solve(gram, Float64Array.from({ length: 4 }, (_, a) => (a === axis ? 1 : 0))); // gram is symmetric
      const row = Float64Array.from(basis, (values, i) => (reach[i] ? values.reduce((sum, value, a) => sum + value * inverse[a], 0) : 0));
      return Float32Array.from(blurred(row, size));
    });
    this.reference = lumaOf(this.picture);
  }

  /** How far the face has moved since the reference picture. */
  private shiftOf(picture: Float32Array): Shift {
    const luma = lumaOf(picture);
    const [right, down] = this.rows.map((row) => {
      let cells = 0;
      for (let i = 0; i < row.length; i++) cells += row[i] * (luma[i] - this.reference[i]);
      return clip(cells, -REACH, REACH);
    });
    return [right, down];
  }

  /** A shift in face widths. */
  private widths([right, down]: Shift): [number, number] {
    const scale = this.crop.box[2] / this.size / this.face[2];
    return [right * scale, down * scale];
  }
}

/** Weights (S,S) of sum 1, moved by some cells of at most REACH; quadratic splines widen them alike for every shift. */
export function displaced(weights: Float32Array, side: number, [right, down]: Shift): Float32Array {
  const edge = REACH + 1;
  const wide = side + 2 * edge;
  const padded = new Float64Array(wide * wide);
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) padded[(y + edge) * wide + x + edge] = weights[y * side + x];
  const [left, across] = spline(edge - right);
  const [top, along] = spline(edge - down);
  const rows = new Float64Array(side * wide);
  along.forEach((w, k) => rows.forEach((_, i) => (rows[i] += w * padded[(top + k) * wide + i])));
  const moved = new Float64Array(side * side);
  across.forEach((w, k) => moved.forEach((_, i) => (moved[i] += w * rows[Math.floor(i / side) * wide + left + k + (i % side)])));
  const total = Math.max(sum(moved), 1e-9);
  return Float32Array.from(moved, (w) => w / total);
}

/** The first of the three cells that a value between cells is made of, and their shares. */
function spline(at: number): [number, number[]] {
  const nearest = rint(at);
  const f = at - nearest;
  return [nearest - 1, [(0.5 - f) ** 2 / 2, 0.75 - f ** 2, (0.5 + f) ** 2 / 2]];
}

function colourOf(picture: Float32Array, weights: Float32Array): Colour {
  let red = 0;
  let green = 0;
  let blue = 0;
  for (let i = 0, at = 0; i < weights.length; i++, at += 3) {
    red += weights[i] * picture[at];
    green += weights[i] * picture[at + 1];
    blue += weights[i] * picture[at + 2];
  }
  return [red, green, blue];
}

/** Means over neighbouring cells, the edges repeated: gradients of those reach farther. */
function blurred(values: Float64Array, size: number): Float64Array {
  const along = (from: Float64Array, stride: number, place: (i: number) => number): Float64Array =>
    from.map((value, i) => ((place(i) > 0 ? from[i - stride] : value) + value + (place(i) < size - 1 ? from[i + stride] : value)) / 3);
  for (let pass = rint(size / 32); pass > 0; pass--) values = along(along(values, size, (i) => Math.floor(i / size)), 1, (i) => i % size);
  return values;
}

function lumaOf(picture: Float32Array): Float64Array {
  const luma = new Float64Array(picture.length / 3);
  for (let i = 0, at = 0; i < luma.length; i++, at += 3) luma[i] = (picture[at] + picture[at + 1] + picture[at + 2]) / 3;
  return luma;
}

/** Central difference along one axis, one-sided at the ends, as numpy.gradient does. */
function slope(luma: Float64Array, at: number, place: number, size: number, stride: number): number {
  if (place === 0) return luma[at + stride] - luma[at];
  if (place === size - 1) return luma[at] - luma[at - stride];
  return (luma[at + stride] - luma[at - stride]) / 2;
}

/** (S·S,) an ellipse that a face fills in its crop. */
function faceWindow(size: number): boolean[] {
  return Array.from({ length: size * size }, (_, i) => {
    const x = ((i % size) + 0.5) / size - 0.5;
    const y = (Math.floor(i / size) + 0.5) / size - 0.5;
    return Math.hypot(x / 0.3, y / 0.42) <= 1;
  });
}
