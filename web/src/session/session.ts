/** The measurement itself, frame by frame; the twin of session/session.py. It remembers one window and nothing more. */

import type { Detector } from "../face/detector";
import { type Changes, type Track, Tracker } from "../face/tracker";
import type { Picture } from "../types";
import { Clock, type Step } from "./clock";
import type { SessionConfig } from "./config";
import { DetectionScheduler } from "../face/detectionScheduler";
import { FaceState } from "./faceState";
import type { Event } from "./results";
import { Background } from "./colourContinuity";

const BREAK_S = 60; // after a longer pause between two frames everything starts anew

/** Turns frames into readings: `push` every frame, one after the other, then `finish`. */
export class Session {
  frameCount = 0;
  lateFrames = 0; // frames that were not later than the one before, left out
  faceSeen = false; // whether any face was ever found
  private readonly scheduler: DetectionScheduler;
  private tracker = new Tracker();
  private faceStates = new Map<number, FaceState>();
  private main: number | null = null;
  private background = new Background();
  private shape = "";
  private clock: Clock;
  private nextStop: number;

  constructor(private readonly config: SessionConfig, detector: Detector) {
    this.scheduler = new DetectionScheduler(detector);
    this.clock = this.newClock();
    this.nextStop = config.windowTicks;
  }

  /** Take in the next frame and say what it brought: windows that are complete, pieces of wave, faces. */
  async push(frame: Picture, tS: number): Promise<Event[]> {
    const events: Event[] = [];
    if (!Number.isFinite(tS) || tS <= this.clock.lastS) {
      this.lateFrames += 1;
      return events;
    }
    const shape = `${frame.width}×${frame.height}`;
    if (shape !== this.shape || tS - this.clock.lastS > BREAK_S) events.push(...(await this.startAnew(shape)));
    this.frameCount += 1;
    const step = this.clock.advance(tS);
    const shift = Math.max(0, ...this.present.map((faceState) => faceState.sampler.shift));
    if (this.tracker.due(tS, shift)) {
      const detections = await this.scheduler.detect(frame, tS, this.tracker);
      events.push(...(await this.take(this.tracker.update(tS, detections), frame, tS, step)));
    }
    const background = this.faceStates.size > 0 ? this.background.measure(frame, tS) : null;
    for (const faceState of this.faceStates.values()) {
      if (faceState.track.lost) await faceState.absent(step);
      else await faceState.frame(frame, tS, step, background);
    }
    events.push(...(await this.windows()));
    return events;
  }

  /** End the measurement: what is still open is closed, and a short clip gets its one window. */
  async finish(): Promise<Event[]> {
    for (const faceState of this.faceStates.values()) await faceState.flush();
    const events = await this.windows(true);
    for (const faceState of this.faceStates.values()) events.push(...(await this.close(faceState)));
    this.faceStates.clear();
    return events;
  }

  /** The people who are in the picture now. */
  get present(): FaceState[] {
    return [...this.faceStates.values()].filter((faceState) => !faceState.track.lost);
  }

  private newClock(): Clock {
    return new Clock(this.config.fps, this.config.windowS + this.config.keepTicks / this.config.fps);
  }

  /** Another picture size or a very long pause: nobody can be followed across it. */
  private async startAnew(shape: string): Promise<Event[]> {
    const events = await this.finish();
    const firstId = this.tracker.nextId;
    this.tracker = new Tracker();
    this.tracker.nextId = firstId;
    this.shape = shape;
    this.main = null;
    this.background = new Background();
    this.clock = this.newClock();
    this.nextStop = this.config.windowTicks;
    return events;
  }

  /** Carry the tracker's changes over to the people. */
  private async take(changes: Changes, frame: Picture, tS: number, step: Step): Promise<Event[]> {
    const events: Event[] = [];
    for (const track of changes.ended) {
      const faceState = this.faceStates.get(track.id);
      if (!faceState) continue;
      this.faceStates.delete(track.id);
      events.push(...(await this.close(faceState)));
      if (faceState.announced) events.push({ kind: "face", face: track.id, tS, change: "ended" });
    }
    for (const track of changes.lost) {
      const faceState = this.faceStates.get(track.id);
      if (!faceState) continue;
      faceState.lose(track.seenS);
      events.push({ kind: "face", face: track.id, tS, change: "lost" });
    }
    for (const track of changes.foundAgain) {
      const faceState = this.faceStates.get(track.id);
      if (!faceState) continue;
      faceState.jump(frame);
      events.push({ kind: "face", face: track.id, tS, change: "returned" });
    }
    for (const track of this.wanted()) {
      let faceState = this.faceStates.get(track.id);
      if (!faceState) {
        faceState = new FaceState(track, frame, this.clock, step.first, this.config);
        this.faceStates.set(track.id, faceState);
      } else if (track.seenS === tS && !changes.foundAgain.includes(track)) faceState.sampler.updateMask(track, frame);
      if (track.confirmed && !faceState.announced) {
        faceState.announced = this.faceSeen = true;
        events.push({ kind: "face", face: track.id, tS, change: "appeared" });
      }
    }
    if ([changes.born, changes.moved, changes.lost, changes.foundAgain, changes.ended].some((tracks) => tracks.length > 0)) {
      this.background.place(frame, this.tracker.present.map((track) => track.box), tS);
    }
    return events;
  }

  /** The faces that are measured. */
  private wanted(): Track[] {
    const present = this.tracker.present;
    if (this.config.faces === "all" || present.length === 0) return present;
    if (present.every((track) => track.id !== this.main)) {
      const area = (track: Track): number => track.box[2] * track.box[3];
      this.main = present.reduce((best, track) => (area(track) > area(best) ? track : best)).id;
    }
    return present.filter((track) => track.id === this.main);
  }

  /** Close the windows that are complete. */
  private async windows(final = false): Promise<Event[]> {
    const events: Event[] = [];
    const late = final ? 0 : this.config.delayTicks;
    while (this.clock.count >= this.nextStop + late) {
      const first = this.nextStop - this.config.windowTicks;
      for (const faceState of this.faceStates.values()) {
        events.push(...(await faceState.window(first, this.nextStop)));
        events.push(...faceState.piece(first + this.config.stepTicks));
      }
      this.nextStop += this.config.stepTicks;
    }
    return events;
  }

  /** The last words of a face that is no longer followed. */
  private async close(faceState: FaceState): Promise<Event[]> {
    const events: Event[] = [];
    if (!faceState.track.confirmed) return events;
    const stop = this.clock.count;
    const first = Math.max(faceState.firstTick, stop - this.config.windowTicks);
    if (faceState.windows === 0) events.push(...(await faceState.window(first, stop)));
    else await faceState.completeWave(first, stop);
    return [...events, ...faceState.piece(stop)];
  }
}
