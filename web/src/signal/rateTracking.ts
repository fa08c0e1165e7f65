/** The heart rate over time: a hidden path through the spectra of windows; the twin of signal/rate_tracking.py. */

import { clip, sum } from "./arrays";
import { BAND_HZ, type Spectrum } from "./rate";

export const GRID_BPM = Float64Array.from({ length: 161 }, (_, i) => 40 + i); // the states of the path
const SPREAD_BPM = 5; // "the same rate" for `support`, as P(|error| ≤ 5 bpm)

/** How strongly a spectrum speaks, and how fast a heart may change. */
export interface TrackModel {
  readonly sharpness: number;
  readonly driftBpm: number;
  readonly jump: number;
  readonly memoryS: number;
}

export const MODEL: TrackModel = { sharpness: 12, driftBpm: 4, jump: 1e-3, memoryS: 10 };

/** The rate of one window within its path. */
export interface Tracked {
  readonly bpm: number;
  readonly support: number;
  readonly sigmaBpm: number;
}

/** Log-likelihood of each rate of the grid for one window. */
export function logEvidence(spec: Spectrum, model: TrackModel): Float64Array {
  const total = spec.bandPower() * spec.stepHz;
  if (total <= 0) return new Float64Array(GRID_BPM.length);
  const widthHz = 1.5 / Math.max(spec.durationS, 1e-9);
  return GRID_BPM.map((bpm) => model.sharpness * clip((spec.evidence(bpm / 60) * widthHz) / total, 0, 1.5));
}

/** Follow the rate window by window, using the past only. The state is one distribution over the grid. */
export class RateTracker {
  private belief: Float64Array | null = null;
  private lastS = 0;
  private seen: Float64Array | null = null;

  constructor(private readonly model: TrackModel = MODEL) {}

  /** Take in what the window that ends at `timeS` shows: one spectrum, or one of each way to see it. */
  update(spectra: readonly Spectrum[], timeS: number): Tracked {
    const each = spectra.map((spec) => logEvidence(spec, this.model));
    const likely = GRID_BPM.map((_, i) => sum(each.map((one) => one[i])));
    const stepS = this.belief === null ? Infinity : Math.max(timeS - this.lastS, 0);
    const before = this.belief === null ? uniform() : spread(this.belief, stepS, this.model);
    this.belief = weigh(before, likely, share(stepS, this.model));
    this.lastS = timeS;
    // The window itself speaks once in full; what the filter keeps is the part that is new.
    this.seen = weigh(before, likely, 1);
    return summarise(this.seen);
  }

  /** 0–1: how much the path as it stands speaks for a rate within 5 bpm of this one. */
  support(bpm: number): number {
    return Math.min(sum((this.seen ?? []).filter((_, i) => Math.abs(GRID_BPM[i] - bpm) <= SPREAD_BPM)), 1);
  }

  reset(): void {
    this.belief = this.seen = null;
  }
}

const uniform = (): Float64Array => new Float64Array(GRID_BPM.length).fill(1 / GRID_BPM.length);

const share = (stepS: number, model: TrackModel): number => Math.min(stepS / model.memoryS, 1);

function weigh(belief: Float64Array, likely: Float64Array, weight: number): Float64Array {
  const top = Math.max(...likely);
  const posterior = belief.map((b, i) => b * Math.exp(weight * (likely[i] - top)));
  const total = Math.max(sum(posterior), 1e-300);
  return posterior.map((p) => p / total);
}

/** Where the rate may be one step later: a Laplace kernel, plus a small chance of a new start. */
function spread(belief: Float64Array, stepS: number, model: TrackModel): Float64Array {
  const scale = Math.max(model.driftBpm * Math.sqrt(Math.max(stepS, 1e-6)), 0.2);
  const kernel = GRID_BPM.map((_, distance) => Math.exp(-distance / scale));
  const moved = belief.map((_, i) => {
    let total = 0;
    for (let k = 0; k < belief.length; k++) total += belief[k] * kernel[Math.abs(i - k)];
    return total;
  });
  const fresh = 1 - (1 - model.jump) ** stepS;
  const total = Math.max(sum(moved), 1e-300);
  return moved.map((m) => ((1 - fresh) * m) / total + fresh / belief.length);
}

/** The 5-bpm neighbourhood with the most mass, its centre and its spread. */
function summarise(posterior: Float64Array): Tracked {
  const massAround = (centre: number): number => {
    let mass = 0;
    GRID_BPM.forEach((bpm, i) => { if (Math.abs(bpm - centre) <= SPREAD_BPM) mass += posterior[i]; });
    return mass;
  };
  let best = 0;
  let most = -1;
  GRID_BPM.forEach((bpm, i) => {
    const mass = massAround(bpm) + 1e-9 * posterior[i];
    if (mass > most) [best, most] = [i, mass];
  });
  let weight = 0;
  let centre = 0;
  GRID_BPM.forEach((bpm, i) => {
    if (Math.abs(bpm - GRID_BPM[best]) > SPREAD_BPM) return;
    weight += posterior[i];
    centre += posterior[i] * bpm;
  });
  centre /= Math.max(weight, 1e-300);
  let near = 0;
  let variance = 0;
  GRID_BPM.forEach((bpm, i) => {
    if (Math.abs(bpm - centre) > 2 * SPREAD_BPM) return;
    near += posterior[i];
    variance += posterior[i] * (bpm - centre) ** 2;
  });
  return {
    bpm: clip(centre, 60 * BAND_HZ[0], 60 * BAND_HZ[1]),
    support: Math.min(massAround(centre), 1),
    sigmaBpm: Math.sqrt(variance / Math.max(near, 1e-300)),
  };
}
