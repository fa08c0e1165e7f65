/** Follow faces from picture to picture; the twin of face/tracker.py. Tracks are never spliced. */

import type { Box, Point } from "../types";
import { type Detection, overlap } from "./detector";

export const LOST_AFTER_S = 1; // not seen for so long: the face is gone
const FORGET_AFTER_S = 10; // a face that comes back later than this is a new one
const MAX_TRACKS = 8;
const STILL_INTERVAL_S = 0.8; // between detections of faces that keep still; motion is noticed in between
const EMPTY_INTERVAL_S = 0.5; // while nobody is in the picture
const MOVING_INTERVAL_S = 0.2; // 5 Hz: above the band of heart rates
const MISSED_INTERVAL_S = 0.1; // after a face was not found where it was

const DEAD_ZONE = 0.04; // shift of the face that leaves the crop where it is, in face widths
const DEAD_ZONE_SIZE = 0.08; // the same for a change of size
const SMOOTHING = 0.5; // weight of the newest detection while the face is in its dead zone
const GATE = 0.5; // a detection this near (in face widths) can be the same face …
const GATE_GROWTH_PER_S = 1; // … and further away when it was not seen for a while
const GATE_SIZE = Math.log(1.6);
const REFOUND_SIZE = Math.log(1.3);
const MOVED_RECENTLY_S = 1;

type Offset = [number, number, number]; // x and y of the centre in face widths, log of the size ratio

/** One face: where its crop is now, and when it was last seen. */
export class Track {
  sightings = 1;
  lost = false;
  movedS = -Infinity; // when the crop moved last
  seenS: number; // time of the last detection
  private smooth: Offset = [0, 0, 0];

  constructor(
    readonly id: number,
    public box: Box, // held still; what is cropped
    public landmarks: readonly Point[], // at the last detection
    readonly bornS: number,
  ) {
    this.seenS = bornS;
  }

  /** Seen more than once: a single detection may be a mistake. */
  get confirmed(): boolean {
    return this.sightings > 1;
  }

  /** How far away a box is: centre distance in face widths, log of the size ratio. */
  distance(box: Box): [number, number] {
    const [x, y, size] = offset(this.box, box);
    return [Math.hypot(x, y), Math.abs(size)];
  }

  /** Take a new detection; true when the crop had to move. */
  see(tS: number, found: Detection): boolean {
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

  /** Come back after an absence. */
  resume(tS: number, found: Detection): void {
    this.see(tS, found);
    this.box = found.box;
    this.movedS = tS;
  }
}

/** What one update changed; a lost track may be found again, an ended one never. */
export interface Changes {
  readonly born: readonly Track[];
  readonly moved: readonly Track[];
  readonly lost: readonly Track[];
  readonly foundAgain: readonly Track[];
  readonly ended: readonly Track[];
}

/** Keeps the tracks; give it the detections of a picture whenever `due` says that it is time to look. */
export class Tracker {
  tracks: Track[] = []; // in order of birth, lost ones included until they are forgotten
  nextId = 0;
  private detectedS = -Infinity;

  constructor(readonly maxTracks = MAX_TRACKS) {}

  /** The tracks whose face is in the picture. */
  get present(): Track[] {
    return this.tracks.filter((track) => !track.lost);
  }

  /** Whether to run the detector; `shift` is how far any face seems to have moved, in face widths. */
  due(tS: number, shift = 0): boolean {
    const present = this.present;
    let intervalS = present.length > 0 ? STILL_INTERVAL_S : EMPTY_INTERVAL_S;
    if (present.some((track) => track.seenS < this.detectedS)) intervalS = MISSED_INTERVAL_S;
    else if (shift > DEAD_ZONE || present.some((track) => !track.confirmed || tS - track.movedS < MOVED_RECENTLY_S)) intervalS = MOVING_INTERVAL_S;
    return tS - this.detectedS >= intervalS - 1e-6;
  }

  /** Give the detections of the picture at `tS` to the tracks they belong to. */
  update(tS: number, detections: readonly Detection[]): Changes {
    this.detectedS = tS;
    const ended = this.forget(tS);
    const found = withoutNested(detections);
    const claims = found.map((one) => this.present.filter((track) => mayBe(track, one, tS)));
    const rivals = new Set(claims.filter((claim) => claim.length > 1).flat());
    for (const track of this.present)
      if (claims.filter((claim) => claim.includes(track)).length > 1) rivals.add(track); // which is it? cannot be told
    ended.push(...this.tracks.filter((track) => rivals.has(track)));
    this.tracks = this.tracks.filter((track) => !rivals.has(track));

    const born: Track[] = [];
    const moved: Track[] = [];
    const foundAgain: Track[] = [];
    const taken = new Set<number>();
    found.forEach((one, i) => {
      const track = claims[i].find((claimed) => !rivals.has(claimed) && !taken.has(claimed.id));
      const back = track ? null : this.refound(one, found);
      if (track) {
        taken.add(track.id);
        if (track.see(tS, one)) moved.push(track);
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
    const { lost, never } = this.lose(tS);
    return { born, moved, lost, foundAgain, ended: [...ended, ...never] };
  }

  /** The lost track that was here, if position and size agree and nobody else could be meant. */
  private refound(one: Detection, found: readonly Detection[]): Track | null {
    const agrees = (track: Track, box: Box): boolean => {
      const [shift, size] = track.distance(box);
      return shift < GATE && size < REFOUND_SIZE;
    };
    const back = this.tracks.filter((track) => track.lost && agrees(track, one.box));
    return back.length === 1 && found.filter((other) => agrees(back[0], other.box)).length === 1 ? back[0] : null;
  }

  private lose(tS: number): { lost: Track[]; never: Track[] } {
    const gone = this.present.filter((track) => tS - track.seenS > LOST_AFTER_S);
    const never = gone.filter((track) => !track.confirmed);
    this.tracks = this.tracks.filter((track) => !never.includes(track));
    const lost = gone.filter((track) => track.confirmed);
    for (const track of lost) track.lost = true;
    return { lost, never };
  }

  private forget(tS: number): Track[] {
    const old = this.tracks.filter((track) => track.lost && tS - track.seenS > FORGET_AFTER_S);
    this.tracks = this.tracks.filter((track) => !old.includes(track));
    return old;
  }
}

function mayBe(track: Track, found: Detection, tS: number): boolean {
  const gate = Math.min(GATE + GATE_GROWTH_PER_S * Math.max(tS - track.seenS - EMPTY_INTERVAL_S, 0), 1);
  const [shift, size] = track.distance(found.box);
  return shift < gate && size < GATE_SIZE;
}

/** From one box to another: x and y of the centre in widths of the first, log of the size ratio. */
function offset(box: Box, other: Box): Offset {
  const [x, y, width, height] = box;
  const [ox, oy, otherWidth, otherHeight] = other;
  return [
    (ox + otherWidth / 2 - x - width / 2) / width,
    (oy + otherHeight / 2 - y - height / 2) / width,
    Math.log(Math.sqrt(otherWidth * otherHeight) / Math.sqrt(width * height)),
  ];
}

/** Leave out boxes that lie inside a more certain one: an eye or a chin taken for a face. */
function withoutNested(detections: readonly Detection[]): Detection[] {
  const kept: Detection[] = [];
  for (const one of [...detections].sort((a, b) => b.score - a.score)) {
    const area = one.box[2] * one.box[3];
    const nested = kept.some(({ box }) => shared(one.box, box) > 0.7 * Math.min(area, box[2] * box[3]));
    if (!nested) kept.push(one);
  }
  return kept;
}

function shared(a: Box, b: Box): number {
  const ratio = overlap(a, b); // shared / (A + B − shared)
  return (ratio / (1 + ratio)) * (a[2] * a[3] + b[2] * b[3]);
}
