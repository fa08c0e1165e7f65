/** The measurement itself, frame by frame; the twin of pipeline/session.py. It remembers one window and nothing more. */

import type { Detector } from "../face/detect";
import { type Changes, type Track, Tracker } from "../face/track";
import type { Picture } from "../types";
import { Clock, type Step } from "./clock";
import type { SessionConfig } from "./config";
import { Lookout } from "./lookout";
import { Person } from "./person";
import type { Event } from "./result";
import { Background } from "./seam";

const BREAK_S = 60; // after a longer pause between two frames everything starts anew

/** Turns frames into readings: `push` every frame, one after the other, then `finish`. */
export class Session {
  frameCount = 0;
  lateFrames = 0; // frames that were not later than the one before, left out
  faceSeen = false; // whether any face was ever found
  private readonly lookout: Lookout;
  private tracker = new Tracker();
  private people = new Map<number, Person>();
  private main: number | null = null;
  private background = new Background();
  private shape = "";
  private clock: Clock;
  private nextStop: number;

  constructor(private readonly config: SessionConfig, detector: Detector) {
    this.lookout = new Lookout(detector);
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
    const shift = Math.max(0, ...this.present.map((person) => person.meter.shift));
    if (this.tracker.due(tS, shift)) {
      const detections = await this.lookout.look(frame, tS, this.tracker);
      events.push(...(await this.take(this.tracker.update(tS, detections), frame, tS, step)));
    }
    const background = this.people.size > 0 ? this.background.measure(frame, tS) : null;
    for (const person of this.people.values()) {
      if (person.track.lost) await person.absent(step);
      else await person.frame(frame, tS, step, background);
    }
    events.push(...(await this.windows()));
    return events;
  }

  /** End the measurement: what is still open is closed, and a short clip gets its one window. */
  async finish(): Promise<Event[]> {
    for (const person of this.people.values()) await person.flush();
    const events = await this.windows(true);
    for (const person of this.people.values()) events.push(...(await this.close(person)));
    this.people.clear();
    return events;
  }

  /** The people who are in the picture now. */
  get present(): Person[] {
    return [...this.people.values()].filter((person) => !person.track.lost);
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
      const person = this.people.get(track.id);
      if (!person) continue;
      this.people.delete(track.id);
      events.push(...(await this.close(person)));
      if (person.announced) events.push({ kind: "face", face: track.id, tS, change: "ended" });
    }
    for (const track of changes.lost) {
      const person = this.people.get(track.id);
      if (!person) continue;
      person.lose(track.seenS);
      events.push({ kind: "face", face: track.id, tS, change: "lost" });
    }
    for (const track of changes.foundAgain) {
      const person = this.people.get(track.id);
      if (!person) continue;
      person.jump(frame);
      events.push({ kind: "face", face: track.id, tS, change: "returned" });
    }
    for (const track of this.wanted()) {
      let person = this.people.get(track.id);
      if (!person) {
        person = new Person(track, frame, this.clock, step.first, this.config);
        this.people.set(track.id, person);
      } else if (track.seenS === tS && !changes.foundAgain.includes(track)) person.meter.look(track, frame);
      if (track.confirmed && !person.announced) {
        person.announced = this.faceSeen = true;
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
      for (const person of this.people.values()) {
        events.push(...(await person.window(first, this.nextStop)));
        events.push(...person.piece(first + this.config.stepTicks));
      }
      this.nextStop += this.config.stepTicks;
    }
    return events;
  }

  /** The last words of a face that is no longer followed. */
  private async close(person: Person): Promise<Event[]> {
    const events: Event[] = [];
    if (!person.track.confirmed) return events;
    const stop = this.clock.count;
    const first = Math.max(person.firstTick, stop - this.config.windowTicks);
    if (person.windows === 0) events.push(...(await person.window(first, stop)));
    else await person.completeWave(first, stop);
    return [...events, ...person.piece(stop)];
  }
}
