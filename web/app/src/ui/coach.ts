/** Meters of the picture: light, distance, stillness and frame rate, from the first frame on. No access to the document. */

import type { Calibration, FaceSample, Quality, Reason } from "phase-rppg";
import { guidance, HINTS, type Key, t } from "./texts";

export type Level = "unknown" | "bad" | "fair" | "good";
export type MeterName = "light" | "distance" | "motion" | "speed";

export interface Meter {
  readonly level: Level;
  readonly share: number; // 0–1, of the bar
  readonly word: Key;
  readonly advice: string | null; // what to do now, if the level is bad
}

export interface Look {
  readonly tS: number;
  readonly face: FaceSample | null;
  readonly frameLuma: number; // 0–255, of the whole picture
  readonly fps: number | null;
}

export type Meters = Readonly<Record<MeterName, Meter>>;

const MOTION_S = 1; // the range of the position is taken over this time
const MOTION = { fair: 0.05, bad: 0.15 }; // face widths
const DARK_PICTURE = 30; // a mean below this explains why no face is found
const LIGHT_S = 0.15; // time constant of the smoothed brightness
const LIMITS = { min_luma: 38, min_face_px: 29, max_clipped: 0.5, min_fps: 10 }; // until the calibration is loaded

const UNKNOWN: Meter = { level: "unknown", share: 0, word: "coach.unknown", advice: null };

/** The limit between fair and good, from the shared hints. */
function hintLimit(quality: keyof Quality): number {
  const found = HINTS.find((one) => one.quality === quality);
  return found?.below ?? found?.above ?? NaN;
}

/** Turns the samples of frames into meters; the gate's limits decide what is bad. */
export class Coach {
  private readonly limits: typeof LIMITS;
  private path: { readonly tS: number; readonly x: number; readonly y: number }[] = [];
  private luma: number | null = null;
  private lastS = 0;

  constructor(calibration?: Calibration) {
    this.limits = calibration?.limits ?? LIMITS;
  }

  update({ tS, face, frameLuma, fps }: Look): Meters {
    if (face === null) {
      this.path = [];
      this.luma = null;
      const dark = frameLuma < DARK_PICTURE;
      return { light: dark ? bad(frameLuma / 255, "coach.dark", "TOO_DARK") : UNKNOWN, distance: UNKNOWN, motion: UNKNOWN, speed: this.speed(fps) };
    }
    const kept = this.luma === null ? 0 : Math.exp(-Math.max(0, tS - this.lastS) / LIGHT_S);
    this.luma = kept * (this.luma ?? 0) + (1 - kept) * face.luma;
    this.lastS = tS;
    return { light: this.light(this.luma, face.clipped), distance: this.distance(face.facePx), motion: this.motion(tS, face), speed: this.speed(fps) };
  }

  private light(luma: number, clipped: number): Meter {
    const { min_luma: darkest, max_clipped: brightest } = this.limits;
    if (clipped > brightest) return bad(1, "coach.bright", "CLIPPED");
    if (luma < darkest) return bad(luma / 255, "coach.dark", "TOO_DARK");
    if (clipped > hintLimit("clipped")) return fair(0.85, "coach.bright");
    return rising(luma, darkest, hintLimit("luma"), "coach.dim");
  }

  private distance(facePx: number): Meter {
    const { min_face_px: smallest } = this.limits;
    if (facePx < smallest) return bad(0.15 * (facePx / smallest), "coach.far", "FACE_TOO_SMALL");
    return rising(facePx, smallest, hintLimit("face_px"), "coach.little-far");
  }

  /** The range of the position in the last second: it reacts within a few frames. */
  private motion(tS: number, { x, y }: FaceSample): Meter {
    this.path = [...this.path.filter((point) => tS - point.tS <= MOTION_S && point.tS <= tS), { tS, x, y }];
    const range = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);
    const moved = Math.hypot(range(this.path.map((point) => point.x)), range(this.path.map((point) => point.y)));
    const share = Math.max(0.05, 1 - moved / (2 * MOTION.bad));
    if (moved > MOTION.bad) return { level: "bad", share, word: "coach.moving", advice: t("coach.hold-still") };
    return moved > MOTION.fair ? fair(share, "coach.restless") : { level: "good", share, word: "coach.good", advice: null };
  }

  private speed(fps: number | null): Meter {
    if (fps === null) return UNKNOWN;
    const { min_fps: slowest } = this.limits;
    if (fps < slowest) return bad(0.15 * (fps / slowest), "coach.slow", "LOW_FPS");
    return rising(fps, slowest, hintLimit("fps"), "coach.little-slow");
  }
}

/** Return the advice of the worst meter, or null; the order is that of what to change first. */
export function advice(meters: Meters): string | null {
  return (["light", "distance", "motion", "speed"] as const).map((name) => meters[name]).find(({ level }) => level === "bad")?.advice ?? null;
}

function rising(value: number, badBelow: number, goodFrom: number, word: Key): Meter {
  const share = Math.min(1, Math.max(0.15, 0.35 + (0.4 * (value - badBelow)) / Math.max(goodFrom - badBelow, 1)));
  return value < goodFrom ? fair(Math.min(share, 0.7), word) : { level: "good", share, word: "coach.good", advice: null };
}

const bad = (share: number, word: Key, reason: Reason): Meter => ({ level: "bad", share: Math.max(0.05, Math.min(1, share)), word, advice: guidance(reason) });
const fair = (share: number, word: Key): Meter => ({ level: "fair", share, word, advice: null });
