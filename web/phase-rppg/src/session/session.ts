/** The streaming core: measurement frame by frame in bounded memory; a port of session/session.py. */

import { reference } from "../data.js";
import { DetectionScheduler } from "../face/detectionScheduler.js";
import type { Detector } from "../face/detector.js";
import type { Picture } from "../types.js";
import type { SessionConfig } from "./config.js";
import type { FacePipeline } from "./facePipeline.js";
import type { Event } from "./results.js";
import { Segment } from "./segment.js";

const MAX_PAUSE_S = reference.session.MAX_PAUSE_S; // a longer pause between two frames begins a new segment

/** Turns frames into events: `push` every frame in order, then `finish`; both return the new events. */
export class Session {
  frameCount = 0;
  lateFrames = 0; // frames that were skipped because they were not later than the previous one
  faceSeen = false; // whether any face was found
  private readonly scheduler: DetectionScheduler;
  private segment: Segment;

  constructor(private readonly config: SessionConfig, detector: Detector, firstFace = 0) {
    this.scheduler = new DetectionScheduler(detector);
    this.segment = new Segment(config, this.scheduler, "", firstFace);
  }

  /** The faces that are measured and in the picture. */
  get present(): FacePipeline[] {
    return this.segment.present;
  }

  /** Number of faces in the picture, measured or not. */
  get visibleCount(): number {
    return this.segment.visibleCount;
  }

  /** Process the next frame and return its events: windows, pieces of the waveform, changes of faces. */
  async push(frame: Picture, tS: number): Promise<Event[]> {
    const pauseS = tS - this.segment.lastS; // NaN for the first frame
    if (!Number.isFinite(tS) || pauseS <= 0) {
      this.lateFrames += 1;
      return [];
    }
    const events: Event[] = [];
    const shape = `${frame.width}×${frame.height}`;
    if (shape !== this.segment.shape || pauseS > MAX_PAUSE_S) events.push(...(await this.beginSegment(shape)));
    this.frameCount += 1;
    events.push(...(await this.segment.push(frame, tS)));
    this.faceSeen ||= events.some((event) => event.kind === "face" && event.change === "appeared");
    return events;
  }

  /** End the measurement and return the remaining events. */
  finish(): Promise<Event[]> {
    return this.segment.finish();
  }

  /** Finish the current segment and begin one with frames of this shape. */
  private async beginSegment(shape: string): Promise<Event[]> {
    const events = await this.segment.finish();
    this.segment = new Segment(this.config, this.scheduler, shape, this.segment.nextId);
    return events;
  }
}
