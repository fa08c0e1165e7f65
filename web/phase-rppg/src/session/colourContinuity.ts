/** Colour traces without steps when their region changes; a port of session/colour_continuity.py. */

import { reference } from "../data.js";
import { backgroundMean, backgroundPoints } from "../face/skinMask.js";
import { clip } from "../signal/arrays.js";
import type { Box, Picture } from "../types.js";

const DECAY_S = reference.colour_continuity.DECAY_S; // time in which colours return to their true level
const MAX_SCALE = reference.colour_continuity.MAX_SCALE; // largest gain between two regions

export type Colour = [number, number, number];

/** Gain of a colour trace that removes the step at a change of region. */
export class ColourContinuity {
  private gain: Colour = [1, 1, 1];

  constructor(private lastS: number) {}

  /** Switch to a region with colour `fresh`, where the previous region has colour `old`. */
  join(old: Colour, fresh: Colour): void {
    this.gain = this.gain.map((g, c) =>
      clip(g * (fresh[c] > 1 ? old[c] / Math.max(fresh[c], 1) : 1), 1 / MAX_SCALE, MAX_SCALE)) as Colour;
  }

  /** Return the colour with the gain applied. */
  scale(colour: Colour, tS: number): Colour {
    const fade = Math.max(0, 1 - (tS - this.lastS) / DECAY_S);
    this.gain = this.gain.map((g) => g ** fade) as Colour;
    this.lastS = tS;
    return colour.map((value, c) => value * this.gain[c]) as Colour;
  }
}

/** The mean colour of the background in each frame. */
export class Background {
  private points: Int32Array = new Int32Array(0);
  private continuity = new ColourContinuity(0);

  /** Choose background points away from the faces. */
  updateRegion(frame: Picture, faces: readonly Box[], tS: number): void {
    const before = this.points;
    this.points = backgroundPoints(frame.width, frame.height, faces);
    if (before.length === 0 || this.points.length === 0) this.continuity = new ColourContinuity(tS);
    else this.continuity.join(backgroundMean(frame, before), backgroundMean(frame, this.points));
  }

  /** Return the colour in this frame, or null without background points. */
  sample(frame: Picture, tS: number): Colour | null {
    return this.points.length > 0 ? this.continuity.scale(backgroundMean(frame, this.points), tS) : null;
  }
}
