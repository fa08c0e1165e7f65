/** The calibration of the gate, written by `phase calibrate`; a port of session/calibration.py. */

/** One term of the logistic model: weight · (clip(x, low, high) − mean) / std. */
export interface Feature {
  readonly mean: number;
  readonly std: number;
  readonly low: number;
  readonly high: number;
  readonly weight: number;
}

/** Hard limits: a window outside them is refused whatever its probabilities. */
export interface QualityLimits {
  readonly min_seconds: number;
  readonly min_fps: number;
  readonly max_gap_s: number;
  readonly min_coverage: number;
  readonly min_face_px: number;
  readonly min_luma: number;
  readonly max_clipped: number;
  readonly min_colourfulness: number;
  readonly max_background: number;
  readonly max_motion: number;
  readonly max_colour_deviation: number;
}

/** P = 1 / (1 + exp(−(bias + Σ features))). */
export interface LogisticModel {
  readonly bias: number;
  readonly features: Readonly<Record<string, Feature>>;
}

/** The probabilities from which a window is shown; gate.ts has the rule. */
export interface Thresholds {
  readonly ok: number; // least p_ok of a shown window
  readonly alive: number; // least p_alive of a confident window
  readonly kept_alive: number; // least p_alive of a shown window near a confident one
  readonly memory_s: number; // largest distance in time to that confident window
}

/** Half width of the interval in bpm: floor + Σ scale · term. */
export interface Interval {
  readonly floor_bpm: number;
  readonly scales: Readonly<Record<string, number>>;
}

/** The calibration of one family of methods, as stored in JSON. */
export interface Calibration {
  readonly family: string;
  readonly alive: LogisticModel; // of p_alive
  readonly ok: LogisticModel; // of p_ok
  readonly thresholds: Thresholds;
  readonly interval: Interval;
  readonly limits: QualityLimits;
}

/** Return the calibration of a family of methods; methods without their own use that of POS. */
export function calibrationOf(family: string, calibrations: Readonly<Record<string, Calibration>>): Calibration {
  const found = calibrations[family] ?? calibrations.pos;
  if (!found) throw new Error("models/calibration/pos.json is missing; the page is not complete");
  return found;
}

/** Read and check a calibration file. */
export function read(data: unknown, where: string): Calibration {
  const file = data as Calibration;
  const missing = { missing: NaN };
  const models = [file?.alive, file?.ok].flatMap((model) => [model?.bias,
    ...Object.values(model?.features ?? { missing: { mean: NaN } }).flatMap((feature) => Object.values(feature))]);
  const numbers = [...models, file?.interval?.floor_bpm, ...Object.values(file?.interval?.scales ?? missing),
    ...Object.values(file?.thresholds ?? missing), ...Object.values(file?.limits ?? missing)];
  if (!numbers.every((value) => Number.isFinite(value))) throw new Error(`${where}: not a calibration file`);
  return file;
}
