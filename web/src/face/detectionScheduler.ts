/** When to run the detector, and at which scale; the twin of face/detection_scheduler.py. */

import { type Detection, type Detector, LONG_SIDE_PX, overlap } from "./detector";
import type { Tracker } from "./tracker";
import { clip, rint } from "../signal/arrays";
import type { Picture } from "../types";

const RESCAN_S = 2; // between detections at full width, which find new faces
const SEARCH_S = 2; // between close searches while nobody is in the picture
const WORKING_FACE_PX = 32; // a known face is followed at about this width …
const WORKING_RANGE_PX = [24, 60] as const; // … and the scale is kept while it stays within these
const SMALLEST_SIDE_PX = 96;

/** Runs the detector at the cheapest scale that will do. Boxes of one face come from one scale. */
export class DetectionScheduler {
  private sidePx: number = LONG_SIDE_PX;
  private scannedS = -Infinity;
  private searchedS = -Infinity;

  constructor(private readonly detector: Detector) {}

  /** The faces in this picture. */
  async detect(frame: Picture, tS: number, tracker: Tracker): Promise<Detection[]> {
    const known = tracker.present;
    if (known.length === 0) return this.search(frame, tS);
    this.chooseScale(frame, Math.min(...known.map((track) => track.box[2])));
    const found = await this.detector.detect(frame, this.sidePx);
    const missed = known.some((track) => found.every((one) => overlap(track.box, one.box) < 0.1));
    if (missed || tS - this.scannedS >= RESCAN_S) {
      this.scannedS = tS;
      const wide = await this.detector.detect(frame, LONG_SIDE_PX);
      found.push(...wide.filter((one) => found.every((other) => overlap(one.box, other.box) < 0.1)));
    }
    return found;
  }

  private async search(frame: Picture, tS: number): Promise<Detection[]> {
    this.scannedS = tS;
    const found = await this.detector.detect(frame, LONG_SIDE_PX);
    if (found.length > 0 || tS - this.searchedS < SEARCH_S) return found;
    this.searchedS = tS;
    return this.detector.search(frame);
  }

  private chooseScale(frame: Picture, facePx: number): void {
    const longPx = Math.max(frame.width, frame.height);
    const workingPx = (facePx * this.sidePx) / longPx;
    if (workingPx >= WORKING_RANGE_PX[0] && workingPx <= WORKING_RANGE_PX[1]) return;
    this.sidePx = rint(clip((longPx * WORKING_FACE_PX) / facePx, SMALLEST_SIDE_PX, longPx));
  }
}
