/** Skin colour and position of one face in each frame; a port of session/skin_sampler.py. */

import { reference } from "../data.js";
import { AreaCrop, CROP_PX, square } from "../face/crop.js";
import { FaceRegistration, type Pair } from "../face/registration.js";
import { skinWeights } from "../face/skinMask.js";
import type { Track } from "../face/tracker.js";
import { rint, sum } from "../signal/arrays.js";
import type { Box, Picture } from "../types.js";
import { type Colour, ColourContinuity } from "./colourContinuity.js";

export const COLUMNS = ["red", "green", "blue", "x", "y", "face_px", "clipped"] as const;

const MASK_INTERVAL = reference.skin_sampler.MASK_INTERVAL; // detections between two updates of the skin weights of a face without motion
const MASK_SMOOTHING = reference.skin_sampler.MASK_SMOOTHING; // weight of the old mask in each update
const CLIPPED_LEVEL = reference.skin_sampler.CLIPPED_LEVEL; // a cell this bright in any channel is clipped
const CLIPPED_INTERVAL = reference.skin_sampler.CLIPPED_INTERVAL; // frames between two counts of clipped cells

/** Samples one track in every frame, in constant memory. */
export class SkinSampler {
  private readonly registration: FaceRegistration;
  private skinMask: Float32Array; // (S,S), aligned with the reference picture
  private face: Box;
  private readonly continuity: ColourContinuity;
  private position: Pair = [0, 0]; // position of the face in the reference picture, in face widths
  private clipped = 0;
  private lastColour: Colour = [0, 0, 0]; // of the skin in the last frame
  private frames = 0;
  private detections = 0;

  constructor(track: Track, frame: Picture, readonly size: number = CROP_PX) {
    this.continuity = new ColourContinuity(track.seenS);
    this.face = track.box;
    this.registration = new FaceRegistration(square(track.box), size, frame, track.seenS);
    this.skinMask = this.currentMask(track);
  }

  /** Distance that the face has moved since the crop was placed, in face widths. */
  get shift(): number {
    return Math.hypot(...this.motion());
  }

  /** The square that follows the face. */
  get box(): Box {
    return this.registration.followingBox;
  }

  /** Skin weights (S,S) within that square, sum 1. */
  get mask(): Float32Array {
    return displaced(this.skinMask, this.size, this.registration.detectionOffset);
  }

  /** Whether this frame shows something else where the face was; the frame is sampled later. */
  showsAnotherFace(frame: Picture, tS: number): boolean {
    this.registration.update(frame, tS);
    return this.registration.showsAnotherFace;
  }

  /** Update the mask after a detection in this frame. */
  updateMask(track: Track, frame: Picture): void {
    const moved = track.box.some((value, i) => value !== this.face[i]);
    this.detections += 1;
    if (!moved && this.detections % MASK_INTERVAL) return;
    const { registration } = this;
    registration.update(frame, track.seenS);
    const old = this.colour();
    if (moved) {
      const [x, y] = this.motion();
      this.position = [this.position[0] + x, this.position[1] + y];
      this.face = track.box;
      registration.setReference(square(track.box), frame);
    }
    const [right, down] = registration.shift;
    const fresh = displaced(this.currentMask(track), this.size, [-right, -down]);
    this.skinMask = moved ? fresh : this.skinMask.map((w, i) => MASK_SMOOTHING * w + (1 - MASK_SMOOTHING) * fresh[i]);
    this.continuity.join(old, this.colour());
  }

  /** Brightness, size and position in the last frame, for display. */
  get last(): { readonly luma: number; readonly facePx: number; readonly clipped: number; readonly x: number; readonly y: number } {
    const [red, green, blue] = this.lastColour;
    const [x, y] = this.motion();
    return { luma: 0.299 * red + 0.587 * green + 0.114 * blue, facePx: this.face[2], clipped: this.clipped, x: this.position[0] + x, y: this.position[1] + y };
  }

  /** Return one row of COLUMNS for this frame. */
  sample(frame: Picture, tS: number): number[] {
    this.registration.update(frame, tS);
    const { picture, shift } = this.registration;
    const weights = displaced(this.skinMask, this.size, shift);
    if (this.frames % CLIPPED_INTERVAL === 0) {
      this.clipped = weights.reduce((total, w, i) =>
        Math.max(picture[3 * i], picture[3 * i + 1], picture[3 * i + 2]) >= CLIPPED_LEVEL ? total + w : total, 0);
    }
    this.frames += 1;
    const [x, y] = this.motion();
    this.lastColour = colourOf(picture, weights);
    const colour = this.continuity.scale(this.lastColour, tS);
    return [...colour, this.position[0] + x, this.position[1] + y, this.face[2], this.clipped];
  }

  /** Return the crop (S,S,3) of the following square in the last measured frame. */
  crop(frame: Picture): Float32Array {
    return new AreaCrop(this.box, this.size, frame.width, frame.height).mean(frame);
  }

  /** Return skin weights computed from the current picture. */
  private currentMask(track: Track): Float32Array {
    return skinWeights(this.registration.picture, this.size, this.registration.box, track.landmarks, track.box);
  }

  private colour(): Colour {
    return colourOf(this.registration.picture, displaced(this.skinMask, this.size, this.registration.shift));
  }

  /** Shift of the face since the crop was placed, in face widths. */
  private motion(): Pair {
    const { displacement, cellPx } = this.registration;
    return [(displacement[0] * cellPx) / this.face[2], (displacement[1] * cellPx) / this.face[2]];
  }
}

/** Shift weights (S,S) by a number of cells. Quadratic splines blur all shifts equally, including zero. */
export function displaced(weights: Float32Array, side: number, [right, down]: Pair): Float32Array {
  const [left, across] = spline(-right); // offset of the first contributing cell
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

/** Return the first of three contributing cells and their weights. */
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
