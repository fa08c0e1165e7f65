/** When to run the detector, and at which scale; a port of face/detection_scheduler.py. */

import { reference } from "../data.js";
import { type Detection, type Detector, LONG_SIDE_PX, overlap } from "./detector.js";
import { DEAD_ZONE, type Tracker } from "./tracker.js";
import { clip, rint } from "../signal/arrays.js";
import type { Picture } from "../types.js";

const STILL_INTERVAL_S = reference.detection_scheduler.STILL_INTERVAL_S; // between detections of faces without motion; registration notices motion in between
const EMPTY_INTERVAL_S = reference.detection_scheduler.EMPTY_INTERVAL_S; // while there is no face
const MOVING_INTERVAL_S = reference.detection_scheduler.MOVING_INTERVAL_S; // 5 Hz: above the band of heart rates
const MISSED_INTERVAL_S = reference.detection_scheduler.MISSED_INTERVAL_S; // after a missed detection
const MOVED_RECENTLY_S = reference.detection_scheduler.MOVED_RECENTLY_S;
const RESCAN_S = reference.detection_scheduler.RESCAN_S; // between detections at full width, which find new faces
const SEARCH_S = reference.detection_scheduler.SEARCH_S; // between searches at higher resolution while there is no face
const WORKING_FACE_PX = reference.detection_scheduler.WORKING_FACE_PX; // target width of a known face in the detector's input
const WORKING_RANGE_PX = reference.detection_scheduler.WORKING_RANGE_PX; // the scale is kept while the width is in this range
const SMALLEST_SIDE_PX = reference.detection_scheduler.SMALLEST_SIDE_PX;

/** Return whether to run the detector; `shift` is the largest shift of a face, in face widths. */
export function detectionDue(tracker: Tracker, tS: number, shift = 0): boolean {
  const present = tracker.present;
  let intervalS = present.length > 0 ? STILL_INTERVAL_S : EMPTY_INTERVAL_S;
  if (present.some((track) => track.seenS < tracker.lastDetectionS)) intervalS = MISSED_INTERVAL_S;
  else if (shift > DEAD_ZONE || present.some((track) => !track.confirmed || tS - track.movedS < MOVED_RECENTLY_S)) intervalS = MOVING_INTERVAL_S;
  return tS - tracker.lastDetectionS >= intervalS - 1e-6;
}

/** Runs the detector at the smallest sufficient scale. Boxes of one face come from one scale. */
export class DetectionScheduler {
  private sidePx: number = LONG_SIDE_PX;
  private scannedS = -Infinity;
  private searchedS = -Infinity;

  constructor(private readonly detector: Detector) {}

  /** Return the faces in this frame. */
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
