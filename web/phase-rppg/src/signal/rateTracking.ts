/** Bayesian tracking of the heart rate over windows; a port of signal/rate_tracking.py. */

import { reference } from "../data.js";
import { clip, sum } from "./arrays.js";
import { BAND_HZ, type Spectrum } from "./rate.js";

export const GRID_BPM = Float64Array.from({ length: 161 }, (_, i) => 40 + i); // states of the filter
const FIRST_DOUBLE = 75 - GRID_BPM[0]; // rates from here on may be the double of another one
const NOISE_SUBHARMONIC = reference.rate_tracking.NOISE_SUBHARMONIC; // the subharmonic excess of noise is rarely above this
const SUPPORT_BPM = reference.rate_tracking.SUPPORT_BPM; // "the same rate" for `support`, as P(|error| ≤ 5 bpm)

/** Weight of the evidence and limits of rate changes. */
export interface RateModel {
  readonly sharpness: number;
  readonly driftBpm: number;
  readonly jump: number;
  readonly halving: number;
  readonly subharmonic: number;
  readonly memoryS: number;
}

const { drift_bpm: driftBpm, memory_s: memoryS, ...others } = reference.rate_model;
export const MODEL: RateModel = { driftBpm, memoryS, ...others };

/** The tracked rate of one window. */
export interface TrackedRate {
  readonly bpm: number;
  readonly support: number;
  readonly sigmaBpm: number;
}

/** Return the log-likelihood of each rate of the grid for one window. */
export function logEvidence(spec: Spectrum, model: RateModel): Float64Array {
  const total = spec.bandPower() * spec.stepHz;
  if (total <= 0) return new Float64Array(GRID_BPM.length);
  const widthHz = 1.5 / Math.max(spec.durationS, 1e-9);
  return GRID_BPM.map((bpm, i) => {
    const share = clip((spec.evidence(bpm / 60) * widthHz) / total, 0, 1.5);
    return model.sharpness * share - (i < FIRST_DOUBLE ? 0 : model.subharmonic * subharmonicExcess(spec, bpm));
  });
}

const subharmonicExcess = (spec: Spectrum, bpm: number): number => clip(spec.subharmonicExcess(bpm / 60) - NOISE_SUBHARMONIC, 0, 1);

/** Forward filter over windows. The state is one distribution over the grid. */
export class RateTracker {
  private belief: Float64Array | null = null;
  private lastS = 0;
  private posterior: Float64Array | null = null;

  constructor(private readonly model: RateModel = MODEL) {}

  /** Update with the spectra of the window that ends at `timeS`, one per waveform; all weights are 1 by default. */
  update(spectra: readonly Spectrum[], timeS: number, weights?: readonly number[]): TrackedRate {
    const each = spectra.map((spec) => logEvidence(spec, this.model));
    const likely = GRID_BPM.map((_, i) => sum(each.map((one, k) => (weights?.[k] ?? 1) * one[i])));
    const stepS = this.belief === null ? Infinity : Math.max(timeS - this.lastS, 0);
    const before = this.belief === null ? uniform() : predict(this.belief, stepS, this.model);
    this.belief = multiply(before, likely, newShare(stepS, this.model));
    this.lastS = timeS;
    // The result uses the window in full. The filter keeps only the new part, because windows overlap.
    this.posterior = multiply(before, likely, 1);
    return summarise(this.posterior);
  }

  /** Posterior probability of a rate within 5 bpm of this one. */
  support(bpm: number): number {
    return Math.min(sum((this.posterior ?? []).filter((_, i) => Math.abs(GRID_BPM[i] - bpm) <= SUPPORT_BPM)), 1);
  }

  reset(): void {
    this.belief = this.posterior = null;
  }
}

const uniform = (): Float64Array => new Float64Array(GRID_BPM.length).fill(1 / GRID_BPM.length);

const newShare = (stepS: number, model: RateModel): number => Math.min(stepS / model.memoryS, 1);

function multiply(belief: Float64Array, likely: Float64Array, weight: number): Float64Array {
  const top = Math.max(...likely);
  const posterior = belief.map((b, i) => b * Math.exp(weight * (likely[i] - top)));
  const total = Math.max(sum(posterior), 1e-300);
  return posterior.map((p) => p / total);
}

/** Prediction step: a Laplace kernel, plus small probabilities of half the rate and of any rate. */
function predict(belief: Float64Array, stepS: number, model: RateModel): Float64Array {
  const scale = Math.max(model.driftBpm * Math.sqrt(Math.max(stepS, 1e-6)), 0.2);
  const kernel = GRID_BPM.map((_, distance) => Math.exp(-distance / scale));
  const moved = belief.map((_, i) => {
    let total = 0;
    for (let k = 0; k < belief.length; k++) total += belief[k] * kernel[Math.abs(i - k)];
    return total;
  });
  const fresh = 1 - (1 - model.jump) ** stepS;
  const halved = 1 - (1 - model.halving) ** stepS;
  const total = Math.max(sum(moved), 1e-300);
  const shares = moved.map((m) => m / total);
  const kept = shares.map((m, i) => (i < FIRST_DOUBLE ? m : (1 - halved) * m));
  for (let i = FIRST_DOUBLE; i < shares.length; i++) kept[halfOf(i)] += halved * shares[i];
  return kept.map((m) => (1 - fresh) * m + fresh / belief.length);
}

/** Return the place on the grid of half a rate; halves between two places go to the even one, as in Python. */
function halfOf(index: number): number {
  const place = Math.max(GRID_BPM[index] / 2 - GRID_BPM[0], 0);
  return place % 1 === 0.5 ? 2 * Math.round(place / 2) : place;
}

/** Return the centre, probability and standard deviation of the most probable 5-bpm neighbourhood. */
function summarise(posterior: Float64Array): TrackedRate {
  const massAround = (centre: number): number => {
    let mass = 0;
    GRID_BPM.forEach((bpm, i) => { if (Math.abs(bpm - centre) <= SUPPORT_BPM) mass += posterior[i]; });
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
    if (Math.abs(bpm - GRID_BPM[best]) > SUPPORT_BPM) return;
    weight += posterior[i];
    centre += posterior[i] * bpm;
  });
  centre /= Math.max(weight, 1e-300);
  let near = 0;
  let variance = 0;
  GRID_BPM.forEach((bpm, i) => {
    if (Math.abs(bpm - centre) > 2 * SUPPORT_BPM) return;
    near += posterior[i];
    variance += posterior[i] * (bpm - centre) ** 2;
  });
  return {
    bpm: clip(centre, 60 * BAND_HZ[0], 60 * BAND_HZ[1]),
    support: Math.min(massAround(centre), 1),
    sigmaBpm: Math.sqrt(variance / Math.max(near, 1e-300)),
  };
}
