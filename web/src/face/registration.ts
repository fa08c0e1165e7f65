/** A crop that goes with its face in every frame; the twin of face/registration.py. */

import { clip, rint } from "../signal/arrays";
import { solve } from "../signal/solve";
import type { Box, Picture } from "../types";
import { AreaCrop } from "./crop";

const SETTLE_S = 1.5; // a new box of the detector is taken over in this time: its jitter becomes a slow drift
const NEAR = 1; // cells: a face that is expected this near to its place in the crop needs no other crop
const FAR = 3; // times the reach of one step: a face that seems to have gone farther since its box was placed is lost
const SHORTEST_S = 1 / 45; // a pace over less time than this is mostly noise of motion and timestamps
const LONGEST_S = 1 / 15; // nobody keeps his pace for longer
const BLUR_CELLS = 32; // a picture of so many cells is blurred once before its gradients are taken
const RIDGE = [1e-3, 1e-3, 1e-6, 1e-6] as const; // of shift right, shift down, gain, level

export type Pair = readonly [right: number, down: number]; // in cells, or in pixels where the name says so

/** The middle and the side of a square, in pixels. */
interface Square {
  readonly x: number;
  readonly y: number;
  readonly side: number;
}

/**
 * The crop of one face: a reference picture, how far the face has moved since, and the square that goes along.
 * `see` every frame, and `place` the crop anew when the detector found the face elsewhere.
 */
export class FaceRegistration {
  picture!: Float32Array; // (S,S,3) of the frame that was seen last
  shift: Pair = [0, 0]; // of the face in `picture` against the reference, in cells
  private ahead: Pair = [0, 0]; // how far the crop went along since the box was placed, in cells
  private pathPx: Pair = [0, 0]; // of the face up to the reference picture
  private pacePxS: Pair = [0, 0]; // of the face, in pixels per second
  private goal: Square; // of a face that had not moved, as the detector says …
  private rest: Square; // … and as far as that was taken over
  private crop!: AreaCrop;
  private placed!: Box;
  private reference!: Float64Array; // (S·S,) luma
  private toRight!: Float32Array; // (S·S,) shift from luma
  private toDown!: Float32Array;
  private readonly inside: Uint8Array; // (S·S,)

  constructor(box: Box, readonly size: number, frame: Picture, private seenS: number) {
    this.goal = this.rest = squareOf(box);
    this.inside = faceWindow(size);
    this.refer(box, frame);
  }

  /** The square that `picture` shows. */
  get box(): Box {
    return this.crop.box;
  }

  /** Width of a cell of the pictures in pixels of the video. */
  get cellPx(): number {
    return this.crop.box[2] / this.size;
  }

  /** How far the face has moved since the crop was placed. */
  get moved(): Pair {
    return [this.ahead[0] + this.shift[0], this.ahead[1] + this.shift[1]];
  }

  /** How far the middle of the detector's box lies from that of the square that goes along, in cells. */
  get offCentre(): Pair {
    const { goal, rest, cellPx } = this;
    return [(goal.x - rest.x) / cellPx, (goal.y - rest.y) / cellPx];
  }

  /** The square that goes with the face, in the frame that was seen last. */
  get along(): Box {
    const { rest, cellPx, pathPx } = this;
    const [right, down] = this.moved;
    const x = rest.x + pathPx[0] + right * cellPx;
    const y = rest.y + pathPx[1] + down * cellPx;
    return [x - rest.side / 2, y - rest.side / 2, rest.side, rest.side];
  }

  /** Look at the next frame where the face is expected, and find out where it is. */
  see(frame: Picture, tS: number): void {
    const pastS = tS - this.seenS;
    this.seenS = tS;
    if (pastS <= 0) return; // this frame was seen
    this.settle(-Math.expm1(-pastS / SETTLE_S));
    const { cellPx } = this;
    const before = this.moved;
    const farthest = reach(this.size);
    const expected = (axis: 0 | 1): number =>
      before[axis] + clip((this.pacePxS[axis] * Math.min(pastS, LONGEST_S)) / cellPx, -farthest, farthest);
    const right = expected(0);
    const down = expected(1);
    if (Math.max(Math.abs(right - this.ahead[0]), Math.abs(down - this.ahead[1])) > NEAR) {
      const [x, y, side] = this.placed;
      this.ahead = [right, down];
      this.crop = new AreaCrop([x + right * cellPx, y + down * cellPx, side, side], this.size, frame.width, frame.height);
    }
    this.picture = this.crop.mean(frame);
    this.shift = this.found();
    const after = this.moved;
    const scale = cellPx / Math.max(pastS, SHORTEST_S);
    this.pacePxS = [(after[0] - before[0]) * scale, (after[1] - before[1]) * scale];
  }

  /** Take the detector's new box in this frame, which was seen before. */
  place(box: Box, frame: Picture): void {
    const { cellPx, pathPx } = this;
    const [right, down] = this.moved;
    this.pathPx = [pathPx[0] + right * cellPx, pathPx[1] + down * cellPx];
    const { x, y, side } = squareOf(box);
    this.goal = { x: x - this.pathPx[0], y: y - this.pathPx[1], side };
    this.refer(box, frame);
  }

  /** Take over a share of what the detector says. */
  private settle(share: number): void {
    const { goal, rest } = this;
    this.rest = {
      x: rest.x + share * (goal.x - rest.x), y: rest.y + share * (goal.y - rest.y), side: rest.side + share * (goal.side - rest.side),
    };
  }

  /** The shift of the face in the picture: one step of Lucas and Kanade (1981). */
  private found(): Pair {
    const { picture, reference, toRight, toDown, ahead } = this;
    let right = 0;
    let down = 0;
    for (let i = 0, at = 0; i < reference.length; i++, at += 3) {
      const change = luma(picture, at) - reference[i];
      right += toRight[i] * change;
      down += toDown[i] * change;
    }
    const farthest = reach(this.size);
    const within = (cells: number, gone: number): number =>
      clip(gone + clip(cells, -farthest, farthest), -FAR * farthest, FAR * farthest) - gone;
    return [within(right, ahead[0]), within(down, ahead[1])];
  }

  /** Make the picture of this box the one against which motion is measured. */
  private refer(box: Box, frame: Picture): void {
    const { size, inside } = this;
    this.placed = box;
    this.crop = new AreaCrop(box, size, frame.width, frame.height);
    this.picture = this.crop.mean(frame);
    this.shift = this.ahead = [0, 0];
    this.reference = Float64Array.from({ length: size * size }, (_, i) => luma(this.picture, 3 * i));
    const level = blurred(this.reference, size);
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
      return Float32Array.from(blurred(row, size)); // of blurred pictures
    });
  }
}

/** How many cells beside its expected place a face may be; farther is not followed in one frame. */
export function reach(size: number): number {
  return Math.max(1, rint(size / 12));
}

function squareOf([x, y, side]: Box): Square {
  return { x: x + side / 2, y: y + side / 2, side };
}

/** Means over neighbouring cells, the edges repeated: gradients of those reach farther. */
function blurred(values: Float64Array, size: number): Float64Array {
  const along = (from: Float64Array, stride: number, place: (i: number) => number): Float64Array =>
    from.map((value, i) => ((place(i) > 0 ? from[i - stride] : value) + value + (place(i) < size - 1 ? from[i + stride] : value)) / 3);
  for (let pass = rint(size / BLUR_CELLS); pass > 0; pass--) values = along(along(values, size, (i) => Math.floor(i / size)), 1, (i) => i % size);
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

/** (S·S,) an ellipse that a face fills in its crop. */
function faceWindow(size: number): Uint8Array {
  return Uint8Array.from({ length: size * size }, (_, i) => {
    const x = ((i % size) + 0.5) / size - 0.5;
    const y = (Math.floor(i / size) + 0.5) / size - 0.5;
    return Math.hypot(x / 0.3, y / 0.42) <= 1 ? 1 : 0;
  });
}
