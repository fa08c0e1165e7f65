/** What one face shows in one frame: the colour of its skin, and how far it has moved; the twin of session/skin_sampler.py. */

import { AreaCrop, CROP_PX, square } from "../face/crop";
import { FaceRegistration, type Pair } from "../face/registration";
import { skinWeights } from "../face/skinMask";
import type { Track } from "../face/tracker";
import { rint, sum } from "../signal/arrays";
import type { Box, Picture } from "../types";
import { type Colour, ColourContinuity } from "./colourContinuity";

export const COLUMNS = ["red", "green", "blue", "x", "y", "face_px", "clipped"] as const;

const MASK_EVERY = 4; // detections between two corrections of the skin weights of a face that keeps still
const MASK_MEMORY = 0.5; // how much of the old weights stays at each correction
const FULL = 248; // a cell this bright in any channel is clipped
const CLIP_EVERY = 8; // frames between two counts of clipped cells

/** Measures one track in every frame; holds a registration and weights, nothing that grows. */
export class SkinSampler {
  private readonly registration: FaceRegistration;
  private weights: Float32Array; // (S,S), where the face was in the reference picture
  private face: Box;
  private readonly continuity: ColourContinuity;
  private place: Pair = [0, 0]; // of the face at the reference picture, in face widths
  private clipped = 0;
  private frames = 0;
  private detections = 0;

  constructor(track: Track, frame: Picture, readonly size: number = CROP_PX) {
    this.continuity = new ColourContinuity(track.seenS);
    this.face = track.box;
    this.registration = new FaceRegistration(square(track.box), size, frame, track.seenS);
    this.weights = this.fresh(track);
  }

  /** How far the face has moved since the crop was placed, in face widths. */
  get shift(): number {
    return Math.hypot(...this.widths());
  }

  /** The square that goes with the face. */
  get box(): Box {
    return this.registration.along;
  }

  /** The weights of the skin within that square, (S,S), sum 1. */
  get skin(): Float32Array {
    return displaced(this.weights, this.size, this.registration.offCentre);
  }

  /** Take over what the detector found in this frame. */
  updateMask(track: Track, frame: Picture): void {
    const moved = track.box.some((value, i) => value !== this.face[i]);
    this.detections += 1;
    if (!moved && this.detections % MASK_EVERY) return;
    const { registration } = this;
    registration.see(frame, track.seenS);
    const old = this.colour();
    if (moved) {
      const [x, y] = this.widths();
      this.place = [this.place[0] + x, this.place[1] + y];
      this.face = track.box;
      registration.place(square(track.box), frame);
    }
    const [right, down] = registration.shift;
    const fresh = displaced(this.fresh(track), this.size, [-right, -down]);
    this.weights = moved ? fresh : this.weights.map((w, i) => MASK_MEMORY * w + (1 - MASK_MEMORY) * fresh[i]);
    this.continuity.join(old, this.colour());
  }

  /** One row of COLUMNS for this frame. */
  measure(frame: Picture, tS: number): number[] {
    this.registration.see(frame, tS);
    const { picture, shift } = this.registration;
    const weights = displaced(this.weights, this.size, shift);
    if (this.frames % CLIP_EVERY === 0) {
      this.clipped = weights.reduce((total, w, i) =>
        Math.max(picture[3 * i], picture[3 * i + 1], picture[3 * i + 2]) >= FULL ? total + w : total, 0);
    }
    this.frames += 1;
    const [x, y] = this.widths();
    const colour = this.continuity.scale(colourOf(picture, weights), tS);
    return [...colour, this.place[0] + x, this.place[1] + y, this.face[2], this.clipped];
  }

  /** What the square that goes with the face shows of the frame that was measured last, (S,S,3). */
  cut(frame: Picture): Float32Array {
    return new AreaCrop(this.box, this.size, frame.width, frame.height).mean(frame);
  }

  /** The skin as it is found in the picture of the registration. */
  private fresh(track: Track): Float32Array {
    return skinWeights(this.registration.picture, this.size, this.registration.box, track.landmarks, track.box);
  }

  private colour(): Colour {
    return colourOf(this.registration.picture, displaced(this.weights, this.size, this.registration.shift));
  }

  /** How far the face has moved since the crop was placed, in face widths. */
  private widths(): Pair {
    const { moved, cellPx } = this.registration;
    return [(moved[0] * cellPx) / this.face[2], (moved[1] * cellPx) / this.face[2]];
  }
}

/** Weights (S,S) of sum 1, moved by some cells; quadratic splines widen them alike for every shift, none included. */
export function displaced(weights: Float32Array, side: number, [right, down]: Pair): Float32Array {
  const [left, across] = spline(-right); // where the cells that make the first one lie
  const [top, along] = spline(-down);
  const rows = new Float64Array(side * side);
  for (let k = 0; k < along.length; k++)
    for (let y = Math.max(0, -top - k); y < Math.min(side, side - top - k); y++)
      for (let x = 0; x < side; x++) rows[y * side + x] += along[k] * weights[(y + top + k) * side + x];
  const moved = new Float64Array(side * side);
  for (let y = 0; y < side; y++)
    for (let x = 0; x < side; x++)
      for (let k = 0, from = x + left; k < across.length; k++, from++)
        if (from >= 0 && from < side) moved[y * side + x] += across[k] * rows[y * side + from];
  const total = Math.max(sum(moved), 1e-9);
  return new Float32Array(moved.map((w) => w / total));
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
