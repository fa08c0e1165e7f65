/** Registration of a face in every frame; a port of face/registration.py. */

import { reference } from "../data.js";
import { clip, rint } from "../signal/arrays.js";
import { solve } from "../signal/solve.js";
import type { Box, Picture } from "../types.js";
import { AreaCrop } from "./crop.js";
import { FaceChange } from "./faceChange.js";

const SETTLE_S = reference.registration.SETTLE_S; // time constant for following the detector's box; turns its jitter into slow drift
const RECROP_CELLS = reference.registration.RECROP_CELLS; // cells; a larger expected shift needs a new crop
const MAX_STEPS = reference.registration.MAX_STEPS; // limit of the total shift since the box was placed, in units of `maxStepCells`
const MIN_VELOCITY_S = reference.registration.MIN_VELOCITY_S; // shortest interval for a velocity; below it noise dominates
const MAX_PREDICTION_S = reference.registration.MAX_PREDICTION_S; // longest extrapolation with constant velocity
const CELLS_PER_BLUR = reference.registration.CELLS_PER_BLUR; // a crop of this size is blurred once before its gradients are computed
const RIDGE = [1e-3, 1e-3, 1e-6, 1e-6] as const; // ridge of shift right, shift down, gain, level

export type Pair = readonly [right: number, down: number]; // in cells, or in pixels where the name says so

/** Centre and side of a square, in pixels. */
interface Square {
  readonly x: number;
  readonly y: number;
  readonly side: number;
}

/**
 * The crop of one face: a reference picture, the shift of the face since, and the square that follows it.
 * Call `update` for every frame, and `setReference` when the detector returns a new box.
 */
export class FaceRegistration {
  picture!: Float32Array; // (S,S,3) crop of the last frame
  shift: Pair = [0, 0]; // shift of the face in `picture` relative to the referenceLuma, in cells
  private cropDisplacement: Pair = [0, 0]; // shift of the crop since the box was placed, in cells
  private pathPx: Pair = [0, 0]; // displacement of the face up to the reference picture
  private velocityPxS: Pair = [0, 0]; // velocity of the face, in pixels per second
  private target: Square; // the detector's square without the motion of the face
  private smoothed: Square; // `target`, smoothed
  private crop!: AreaCrop;
  private referenceBox!: Box;
  private referenceLuma!: Float64Array; // (S·S,) luma
  private toRight!: Float32Array; // (S·S,) shift from luma
  private toDown!: Float32Array;
  private readonly inside: Uint8Array; // (S·S,)
  private readonly change: FaceChange;

  constructor(box: Box, readonly size: number, frame: Picture, private lastS: number) {
    this.target = this.smoothed = squareOf(box);
    this.inside = faceWindow(size);
    this.makeReference(box, frame);
    this.change = new FaceChange(this.picture, size);
  }

  /** Whether the last frame shows something else where the face was. */
  get showsAnotherFace(): boolean {
    return this.change.changed;
  }

  /** The square of `picture`. */
  get box(): Box {
    return this.crop.box;
  }

  /** Width of a cell in pixels of the video. */
  get cellPx(): number {
    return this.crop.box[2] / this.size;
  }

  /** Shift of the face since the crop was placed, in cells. */
  get displacement(): Pair {
    return [this.cropDisplacement[0] + this.shift[0], this.cropDisplacement[1] + this.shift[1]];
  }

  /** Offset of the detector's box from the following square, in cells. */
  get detectionOffset(): Pair {
    const { target, smoothed, cellPx } = this;
    return [(target.x - smoothed.x) / cellPx, (target.y - smoothed.y) / cellPx];
  }

  /** The square that follows the face, in the last frame. */
  get followingBox(): Box {
    const { smoothed, cellPx, pathPx } = this;
    const [right, down] = this.displacement;
    const x = smoothed.x + pathPx[0] + right * cellPx;
    const y = smoothed.y + pathPx[1] + down * cellPx;
    return [x - smoothed.side / 2, y - smoothed.side / 2, smoothed.side, smoothed.side];
  }

  /** Predict the position in the next frame and measure it. */
  update(frame: Picture, tS: number): void {
    const elapsedS = tS - this.lastS;
    this.lastS = tS;
    if (elapsedS <= 0) return; // this frame is known
    this.settle(-Math.expm1(-elapsedS / SETTLE_S));
    const { cellPx } = this;
    const before = this.displacement;
    const maxStep = maxStepCells(this.size);
    const expected = (axis: 0 | 1): number =>
      before[axis] + clip((this.velocityPxS[axis] * Math.min(elapsedS, MAX_PREDICTION_S)) / cellPx, -maxStep, maxStep);
    const right = expected(0);
    const down = expected(1);
    if (Math.max(Math.abs(right - this.cropDisplacement[0]), Math.abs(down - this.cropDisplacement[1])) > RECROP_CELLS) {
      const [x, y, side] = this.referenceBox;
      this.cropDisplacement = [right, down];
      this.crop = new AreaCrop([x + right * cellPx, y + down * cellPx, side, side], this.size, frame.width, frame.height);
    }
    this.picture = this.crop.mean(frame);
    this.change.update(this.picture, elapsedS);
    this.shift = this.measureShift();
    const after = this.displacement;
    const scale = cellPx / Math.max(elapsedS, MIN_VELOCITY_S);
    this.velocityPxS = [(after[0] - before[0]) * scale, (after[1] - before[1]) * scale];
  }

  /** Set the detector's new box in the current frame. */
  setReference(box: Box, frame: Picture): void {
    const { cellPx, pathPx } = this;
    const [right, down] = this.displacement;
    this.pathPx = [pathPx[0] + right * cellPx, pathPx[1] + down * cellPx];
    const { x, y, side } = squareOf(box);
    this.target = { x: x - this.pathPx[0], y: y - this.pathPx[1], side };
    this.makeReference(box, frame);
    this.change.setRegion(this.picture);
  }

  /** Move the following square towards the detector's box. */
  private settle(share: number): void {
    const { target, smoothed } = this;
    this.smoothed = {
      x: smoothed.x + share * (target.x - smoothed.x), y: smoothed.y + share * (target.y - smoothed.y), side: smoothed.side + share * (target.side - smoothed.side),
    };
  }

  /** Shift of the face by one step of Lucas and Kanade (1981). */
  private measureShift(): Pair {
    const { picture, referenceLuma, toRight, toDown, cropDisplacement } = this;
    let right = 0;
    let down = 0;
    for (let i = 0, at = 0; i < referenceLuma.length; i++, at += 3) {
      const change = luma(picture, at) - referenceLuma[i];
      right += toRight[i] * change;
      down += toDown[i] * change;
    }
    const maxStep = maxStepCells(this.size);
    const within = (cells: number, gone: number): number =>
      clip(gone + clip(cells, -maxStep, maxStep), -MAX_STEPS * maxStep, MAX_STEPS * maxStep) - gone;
    return [within(right, cropDisplacement[0]), within(down, cropDisplacement[1])];
  }

  /** Use the crop of this box as the reference for motion. */
  private makeReference(box: Box, frame: Picture): void {
    const { size, inside } = this;
    this.referenceBox = box;
    this.crop = new AreaCrop(box, size, frame.width, frame.height);
    this.picture = this.crop.mean(frame);
    this.shift = this.cropDisplacement = [0, 0];
    this.referenceLuma = Float64Array.from({ length: size * size }, (_, i) => luma(this.picture, 3 * i));
    const level = blur(this.referenceLuma, size);
    const basis = [level.map((_, i) => -slope(level, i, i % size, size, 1)),
      level.map((_, i) => -slope(level, i, Math.floor(i / size), size, size)), level, level.map(() => 1)]; // shift, gain, level
    const gram = new Float64Array(16);
    for (let a = 0; a < 4; a++)
      for (let b = a; b < 4; b++) {
        let product = 0;
        for (let i = 0; i < level.length; i++) if (inside[i]) product += basis[a][i] * basis[b][i];
        gram[4 * a + b] = gram[4 * b + a] = product;
      }
    const trace = gram[0] + gram[5] + gram[10] + gram[15];
    RIDGE.forEach((ridge, a) => (gram[5 * a] += ((1e-3 * trace) / 4) * ridge + 1e-6));
    [this.toRight, this.toDown] = [0, 1].map((axis) => {
      const inverse = solve(gram, Float64Array.from(RIDGE, (_, a) => (a === axis ? 1 : 0))); // gram is symmetric
      const row = level.map((_, i) => (inside[i] ? basis.reduce((sum, values, a) => sum + values[i] * inverse[a], 0) : 0));
      return Float32Array.from(blur(row, size)); // the filter also blurs its input
    });
  }
}

/** Largest shift per frame, in cells. */
export function maxStepCells(size: number): number {
  return Math.max(1, rint(size / 12));
}

function squareOf([x, y, side]: Box): Square {
  return { x: x + side / 2, y: y + side / 2, side };
}

/** Box blur with repeated edges; it extends the range of the gradients. */
function blur(values: Float64Array, size: number): Float64Array {
  const blurAxis = (from: Float64Array, stride: number, place: (i: number) => number): Float64Array =>
    from.map((value, i) => ((place(i) > 0 ? from[i - stride] : value) + value + (place(i) < size - 1 ? from[i + stride] : value)) / 3);
  for (let pass = rint(size / CELLS_PER_BLUR); pass > 0; pass--) values = blurAxis(blurAxis(values, size, (i) => Math.floor(i / size)), 1, (i) => i % size);
  return values;
}

/** The mean of the three colours of a cell. */
function luma(picture: Float32Array, at: number): number {
  return (picture[at] + picture[at + 1] + picture[at + 2]) / 3;
}

/** Central difference along one axis, one-sided at the ends, as numpy.gradient does. */
function slope(values: Float64Array, at: number, place: number, size: number, stride: number): number {
  if (place === 0) return values[at + stride] - values[at];
  if (place === size - 1) return values[at] - values[at - stride];
  return (values[at + stride] - values[at - stride]) / 2;
}

/** Elliptical window (S·S,) of the face within its crop. */
function faceWindow(size: number): Uint8Array {
  return Uint8Array.from({ length: size * size }, (_, i) => {
    const x = ((i % size) + 0.5) / size - 0.5;
    const y = (Math.floor(i / size) + 0.5) / size - 0.5;
    return Math.hypot(x / 0.3, y / 0.42) <= 1 ? 1 : 0;
  });
}
