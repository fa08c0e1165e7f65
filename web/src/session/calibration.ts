/** The numbers of the gate, from the data files that `phase calibrate` wrote; the twin of session/calibration.py. */

/** One term of the logistic model: weight · (clip(x, low, high) − mean) / std. */
export interface Feature {
  readonly mean: number;
  readonly std: number;
  readonly low: number;
  readonly high: number;
  readonly weight: number;
}

/** Beyond these a window is refused whatever its line looks like. */
export interface Limits {
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
  readonly max_off_colour: number;
}

/** The gate of one family of methods, as the JSON file has it. */
export interface Calibration {
  readonly family: string;
  readonly threshold: number; // from this p_ok on a window is sure: it is shown
  readonly kept_threshold: number; // from this on it is shown while the same face was sure a short time ago
  readonly memory_s: number; // how long ago that may be
  readonly bias: number;
  readonly features: Readonly<Record<string, Feature>>;
  readonly interval_scale: number; // half-width of the interval = floor + scale · sigma
  readonly interval_floor_bpm: number;
  readonly limits: Limits;
}

/** Read and check a calibration file. */
export function read(data: unknown, where: string): Calibration {
  const file = data as Calibration;
  const numbers = [file?.threshold, file?.kept_threshold, file?.memory_s, file?.bias, file?.interval_scale, file?.interval_floor_bpm,
    ...Object.values(file?.limits ?? { missing: NaN }),
    ...Object.values(file?.features ?? { missing: { mean: NaN } }).flatMap((feature) => Object.values(feature))];
  if (!numbers.every((value) => Number.isFinite(value))) throw new Error(`${where}: not a calibration file`);
  return file;
}
