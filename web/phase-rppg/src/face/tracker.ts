/** Matching of detections to faces over time; a port of face/tracker.py. Tracks are never merged. */

import { reference } from "../data.js";
import type { Box, Point } from "../types.js";
import { type Detection, overlap } from "./detector.js";

export const LOST_AFTER_S = reference.tracker.LOST_AFTER_S; // a face without a detection for this time is lost
const FORGET_AFTER_S = reference.tracker.FORGET_AFTER_S; // a face that returns later gets a new track
const MAX_TRACKS = reference.tracker.MAX_TRACKS;
export const DEAD_ZONE = reference.tracker.DEAD_ZONE; // the crop stays for smaller shifts, in face widths
const DEAD_ZONE_SIZE = reference.tracker.DEAD_ZONE_SIZE; // the same for the log of the size ratio
const SMOOTHING = reference.tracker.SMOOTHING; // weight of the last detection within the dead zone
const GATE = reference.tracker.GATE; // largest distance of the same face, in face widths
const GATE_GROWTH_PER_S = reference.tracker.GATE_GROWTH_PER_S; // growth of this distance without detections …
const GATE_GROWS_AFTER_S = reference.tracker.GATE_GROWS_AFTER_S; // … for longer than this
const GATE_SIZE = reference.tracker.GATE_SIZE;
const RETURN_GATE_SIZE = reference.tracker.RETURN_GATE_SIZE;

type Offset = [number, number, number]; // x and y of the centre in face widths, log of the size ratio

/** One face: its crop and the time of its last detection. */
export class Track {
  sightings = 1;
  lost = false;
  movedS = -Infinity; // time of the last crop movement
  seenS: number; // time of the last detection
  private smooth: Offset = [0, 0, 0];

  constructor(
    readonly id: number,
    public box: Box, // constant within the dead zone
    public landmarks: readonly Point[], // at the last detection
    readonly bornS: number,
  ) {
    this.seenS = bornS;
  }

  /** Whether there was more than one detection; a single one may be false. */
  get confirmed(): boolean {
    return this.sightings > 1;
  }

  /** Centre distance in face widths and log of the size ratio. */
  distance(box: Box): [number, number] {
    const [x, y, size] = offset(this.box, box);
    return [Math.hypot(x, y), Math.abs(size)];
  }

  /** Add a detection; return whether the crop moved. */
  addDetection(tS: number, found: Detection): boolean {
    this.seenS = tS;
    this.sightings += 1;
    this.lost = false;
    this.landmarks = found.landmarks;
    const now = offset(this.box, found.box);
    this.smooth = this.smooth.map((s, i) => s + SMOOTHING * (now[i] - s)) as Offset;
    const shift = Math.min(Math.hypot(now[0], now[1]), Math.hypot(this.smooth[0], this.smooth[1]));
    const size = Math.min(Math.abs(now[2]), Math.abs(this.smooth[2]));
    if (shift <= DEAD_ZONE && size <= DEAD_ZONE_SIZE) return false;
    this.box = found.box;
    this.movedS = tS;
    this.smooth = [0, 0, 0];
    return true;
  }

  /** Continue a lost track. */
  resume(tS: number, found: Detection): void {
    this.addDetection(tS, found);
    this.box = found.box;
    this.movedS = tS;
  }
}

/** Changes of one update. A lost track can be found again, an ended one cannot. */
export interface Changes {
  readonly born: readonly Track[];
  readonly moved: readonly Track[];
  readonly lost: readonly Track[];
  readonly foundAgain: readonly Track[];
  readonly ended: readonly Track[];
}

/** Holds the tracks. `detectionDue` in detectionScheduler.ts says when to detect. */
export class Tracker {
  tracks: Track[] = []; // in order of appearance, including lost tracks
  nextId = 0;
  lastDetectionS = -Infinity; // time of the last call of `update`

  constructor(readonly maxTracks = MAX_TRACKS) {}

  /** Tracks of visible faces. */
  get present(): Track[] {
    return this.tracks.filter((track) => !track.lost);
  }

  /**
   * Match the detections of the frame at `tS` to the tracks. `replaced` are the ids of tracks whose picture changed at
   * once: a face that is detected there is another one.
   */
  update(tS: number, detections: readonly Detection[], replaced: ReadonlySet<number> = new Set()): Changes {
    this.lastDetectionS = tS;
    const ended = this.removeOld(tS);
    const found = removeNested(detections);
    const candidates = found.map((one) => this.present.filter((track) => matches(track, one, tS)));
    const ambiguous = new Set(candidates.filter((candidate) => candidate.length > 1).flat());
    for (const track of this.present)
      if (candidates.filter((candidate) => candidate.includes(track)).length > 1) ambiguous.add(track); // ambiguous match
    for (const track of candidates.flat()) if (replaced.has(track.id)) ambiguous.add(track);
    ended.push(...this.tracks.filter((track) => ambiguous.has(track)));
    this.tracks = this.tracks.filter((track) => !ambiguous.has(track));

    const born: Track[] = [];
    const moved: Track[] = [];
    const foundAgain: Track[] = [];
    const taken = new Set<number>();
    found.forEach((one, i) => {
      const track = candidates[i].find((track) => !ambiguous.has(track) && !taken.has(track.id));
      const back = track ? null : this.findLost(one, found);
      if (track) {
        taken.add(track.id);
        if (track.addDetection(tS, one)) moved.push(track);
      } else if (back && !taken.has(back.id)) {
        taken.add(back.id);
        back.resume(tS, one);
        foundAgain.push(back);
      } else if (this.present.length < this.maxTracks) {
        const fresh = new Track(this.nextId++, one.box, one.landmarks, tS);
        taken.add(fresh.id);
        this.tracks.push(fresh);
        born.push(fresh);
      }
    });
    const { lost, dropped } = this.markLost(tS);
    return { born, moved, lost, foundAgain, ended: [...ended, ...dropped] };
  }

  /** Return the lost track with this position and size, if it is unambiguous. */
  private findLost(one: Detection, found: readonly Detection[]): Track | null {
    const agrees = (track: Track, box: Box): boolean => {
      const [shift, size] = track.distance(box);
      return shift < GATE && size < RETURN_GATE_SIZE;
    };
    const back = this.tracks.filter((track) => track.lost && agrees(track, one.box));
    return back.length === 1 && found.filter((other) => agrees(back[0], other.box)).length === 1 ? back[0] : null;
  }

  private markLost(tS: number): { lost: Track[]; dropped: Track[] } {
    const gone = this.present.filter((track) => tS - track.seenS > LOST_AFTER_S);
    const dropped = gone.filter((track) => !track.confirmed);
    this.tracks = this.tracks.filter((track) => !dropped.includes(track));
    const lost = gone.filter((track) => track.confirmed);
    for (const track of lost) track.lost = true;
    return { lost, dropped };
  }

  private removeOld(tS: number): Track[] {
    const old = this.tracks.filter((track) => track.lost && tS - track.seenS > FORGET_AFTER_S);
    this.tracks = this.tracks.filter((track) => !old.includes(track));
    return old;
  }
}

function matches(track: Track, found: Detection, tS: number): boolean {
  const gate = Math.min(GATE + GATE_GROWTH_PER_S * Math.max(tS - track.seenS - GATE_GROWS_AFTER_S, 0), 1);
  const [shift, size] = track.distance(found.box);
  return shift < gate && size < GATE_SIZE;
}

/** Offset between two boxes: x and y of the centre in widths of the first, log of the size ratio. */
function offset(box: Box, other: Box): Offset {
  const [x, y, width, height] = box;
  const [ox, oy, otherWidth, otherHeight] = other;
  return [
    (ox + otherWidth / 2 - x - width / 2) / width,
    (oy + otherHeight / 2 - y - height / 2) / width,
    Math.log(Math.sqrt(otherWidth * otherHeight) / Math.sqrt(width * height)),
  ];
}

/** Remove boxes inside one with a higher score, such as an eye detected as a face. */
function removeNested(detections: readonly Detection[]): Detection[] {
  const kept: Detection[] = [];
  for (const one of [...detections].sort((a, b) => b.score - a.score)) {
    const area = one.box[2] * one.box[3];
    const nested = kept.some(({ box }) => intersectionArea(one.box, box) > 0.7 * Math.min(area, box[2] * box[3]));
    if (!nested) kept.push(one);
  }
  return kept;
}

function intersectionArea(a: Box, b: Box): number {
  const ratio = overlap(a, b); // shared / (A + B − shared)
  return (ratio / (1 + ratio)) * (a[2] * a[3] + b[2] * b[3]);
}
