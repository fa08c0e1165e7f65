/** Detection, tracking and measurement of all faces in one segment of a recording; a port of session/segment.py. */

import { type DetectionScheduler, detectionDue } from "../face/detectionScheduler.js";
import { type Changes, type Track, Tracker } from "../face/tracker.js";
import type { Picture } from "../types.js";
import { Clock, type Step } from "./clock.js";
import { Background } from "./colourContinuity.js";
import type { SessionConfig } from "./config.js";
import { FacePipeline } from "./facePipeline.js";
import type { Event } from "./results.js";

/** A sequence of frames of one size without a long pause; faces are tracked within it only. */
export class Segment {
  private readonly clock: Clock;
  private readonly tracker = new Tracker();
  private readonly background = new Background();
  private readonly faces = new Map<number, FacePipeline>();
  private replaced: ReadonlySet<number> = new Set(); // faces in whose place the last frame showed something else
  private largestId: number | null = null; // the face that `faces: "largest"` measures
  private nextStop: number; // the tick at which the next window ends

  constructor(private readonly config: SessionConfig, private readonly scheduler: DetectionScheduler, readonly shape = "", firstId = 0) {
    this.clock = new Clock(config.fps, config.windowS + config.keepTicks / config.fps);
    this.tracker.nextId = firstId;
    this.nextStop = config.windowTicks;
  }

  /** Time of the last frame; NaN before the first one. */
  get lastS(): number {
    return this.clock.lastS;
  }

  /** Number of the next new face. */
  get nextId(): number {
    return this.tracker.nextId;
  }

  /** The faces that are measured and in the picture. */
  get present(): FacePipeline[] {
    return [...this.faces.values()].filter((face) => !face.track.lost);
  }

  /** Number of confirmed faces in the picture, measured or not. */
  get visibleCount(): number {
    return this.tracker.present.filter((track) => track.confirmed).length;
  }

  /** Process the next frame and return its events. */
  async push(frame: Picture, tS: number): Promise<Event[]> {
    const events: Event[] = [];
    const step = this.clock.advance(tS);
    const shift = Math.max(0, ...this.present.map((face) => face.sampler.shift));
    const replaced = new Set(this.present.filter((face) => face.sampler.showsAnotherFace(frame, tS)).map((face) => face.track.id));
    if ([...replaced].some((id) => !this.replaced.has(id)) || detectionDue(this.tracker, tS, shift)) {
      const detections = await this.scheduler.detect(frame, tS, this.tracker);
      events.push(...(await this.apply(this.tracker.update(tS, detections, replaced), frame, tS, step)));
    }
    this.replaced = replaced;
    const background = this.faces.size > 0 ? this.background.sample(frame, tS) : null;
    for (const face of this.faces.values()) {
      if (face.track.lost) await face.pushAbsence(step);
      else await face.pushFrame(frame, tS, step, background);
    }
    return [...events, ...(await this.completeWindows())];
  }

  /** Return the remaining events; a clip that is shorter than a window gets one window. */
  async finish(): Promise<Event[]> {
    for (const face of this.faces.values()) await face.flushNetwork();
    const events = await this.completeWindows(true);
    for (const face of this.faces.values()) events.push(...(await this.close(face)));
    this.faces.clear();
    return events;
  }

  /** Apply the changes of the tracker to the faces. */
  private async apply(changes: Changes, frame: Picture, tS: number, step: Step): Promise<Event[]> {
    const events: Event[] = [];
    for (const track of changes.ended) {
      const face = this.faces.get(track.id);
      if (!face) continue;
      this.faces.delete(track.id);
      events.push(...(await this.close(face)));
      if (face.announced) events.push({ kind: "face", face: track.id, tS, change: "ended" });
    }
    for (const track of changes.lost) {
      const face = this.faces.get(track.id);
      if (!face) continue;
      face.markLost(track.seenS);
      events.push({ kind: "face", face: track.id, tS, change: "lost" });
    }
    for (const track of changes.foundAgain) {
      const face = this.faces.get(track.id);
      if (!face) continue;
      face.restartSampler(frame);
      events.push({ kind: "face", face: track.id, tS, change: "returned" });
    }
    for (const track of this.measuredTracks()) events.push(...this.update(track, changes, frame, tS, step));
    if ([changes.born, changes.moved, changes.lost, changes.foundAgain, changes.ended].some((tracks) => tracks.length > 0))
      this.background.updateRegion(frame, this.tracker.present.map((track) => track.box), tS);
    return events;
  }

  /** Add the face of a track, or give its sampler the new detection; report a confirmed face once. */
  private update(track: Track, changes: Changes, frame: Picture, tS: number, step: Step): Event[] {
    let face = this.faces.get(track.id);
    if (!face) {
      face = new FacePipeline(track, frame, this.clock, step.first, this.config);
      this.faces.set(track.id, face);
    } else if (track.seenS === tS && !changes.foundAgain.includes(track)) face.sampler.updateMask(track, frame);
    if (face.announced || !track.confirmed) return [];
    face.announced = true;
    return [{ kind: "face", face: track.id, tS, change: "appeared" }];
  }

  private measuredTracks(): Track[] {
    const present = this.tracker.present;
    if (this.config.faces === "all" || present.length === 0) return present;
    if (present.every((track) => track.id !== this.largestId)) {
      const area = (track: Track): number => track.box[2] * track.box[3];
      this.largestId = present.reduce((best, track) => (area(track) > area(best) ? track : best)).id;
    }
    return present.filter((track) => track.id === this.largestId);
  }

  /** Analyse the windows for which the network and the context have all frames. */
  private async completeWindows(final = false): Promise<Event[]> {
    const events: Event[] = [];
    const delay = final ? 0 : this.config.delayTicks + this.config.contextTicks;
    while (this.clock.count >= this.nextStop + delay) {
      for (const face of this.faces.values()) events.push(...(await this.completeWindow(face, this.nextStop)));
      this.nextStop += this.config.stepTicks;
    }
    return events;
  }

  /** Return the window of a face that ends at a tick, and the waveform that no later window changes. */
  private async completeWindow(face: FacePipeline, stop: number): Promise<Event[]> {
    const first = stop - this.config.windowTicks;
    return [...(await face.analyzeWindow(first, stop)), ...face.nextWave(first + this.config.stepTicks)];
  }

  /** Return the last windows and the rest of the waveform of a face that is no longer tracked. */
  private async close(face: FacePipeline): Promise<Event[]> {
    const events: Event[] = [];
    if (!face.track.confirmed) return events;
    const stop = this.clock.count;
    // Windows that were waiting for their context get no more of it.
    for (let last = this.nextStop; last <= stop - this.config.delayTicks; last += this.config.stepTicks)
      events.push(...(await this.completeWindow(face, last)));
    const first = Math.max(face.state.firstTick, stop - this.config.windowTicks);
    if (face.windowCount === 0) events.push(...(await face.analyzeWindow(first, stop)));
    else await face.completeWave(first, stop);
    return [...events, ...face.nextWave(stop)];
  }
}
