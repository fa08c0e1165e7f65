/** Colours that go on without a step when the region they are taken from changes; the twin of session/colour_continuity.py. */

import { backgroundMean, backgroundPoints } from "../face/skinMask";
import { clip } from "../signal/arrays";
import type { Box, Picture } from "../types";

const MEMORY_S = 20; // colours drift back to their true level in this time
const LIMIT = 1.5; // regions that differ by more than this factor are not joined fully

export type Colour = [number, number, number];

/** The scale of a colour trace since its region last changed. */
export class ColourContinuity {
  private gain: Colour = [1, 1, 1];

  constructor(private lastS: number) {}

  /** From now on colours come from the region that shows `fresh` where the one before showed `old`. */
  join(old: Colour, fresh: Colour): void {
    this.gain = this.gain.map((g, c) =>
      clip(g * (fresh[c] > 1 ? old[c] / Math.max(fresh[c], 1) : 1), 1 / LIMIT, LIMIT)) as Colour;
  }

  /** The colour as the trace has it. */
  scale(colour: Colour, tS: number): Colour {
    const fade = Math.max(0, 1 - (tS - this.lastS) / MEMORY_S);
    this.gain = this.gain.map((g) => g ** fade) as Colour;
    this.lastS = tS;
    return colour.map((value, c) => value * this.gain[c]) as Colour;
  }
}

/** The mean colour away from all faces, frame by frame. */
export class Background {
  private points: Int32Array = new Int32Array(0);
  private continuity = new ColourContinuity(0);

  /** The faces of this frame are where the background is not. */
  place(frame: Picture, faces: readonly Box[], tS: number): void {
    const before = this.points;
    this.points = backgroundPoints(frame.width, frame.height, faces);
    if (before.length === 0 || this.points.length === 0) this.continuity = new ColourContinuity(tS);
    else this.continuity.join(backgroundMean(frame, before), backgroundMean(frame, this.points));
  }

  /** Its colour in this frame; null when faces fill the picture or nobody was placed yet. */
  measure(frame: Picture, tS: number): Colour | null {
    return this.points.length > 0 ? this.continuity.scale(backgroundMean(frame, this.points), tS) : null;
  }
}
