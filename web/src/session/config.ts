/** The choices of a session; the twin of session/config.py. */

import { CROP_PX } from "../face/crop";
import { rint } from "../signal/arrays";
import type { Calibration } from "./calibration";
import type { PulseModel } from "./pulseModel";

const SPARE_S = 2; // kept beyond window and step, for late answers

export interface Choices {
  readonly method?: "pos" | "chrom";
  readonly model?: PulseModel | null; // a streaming network instead of a method
  readonly windowS?: number;
  readonly stepS?: number;
  readonly fps?: number; // of the uniform clock; a model brings its own
  readonly faces?: "all" | "largest";
  readonly gated?: boolean;
  readonly second?: boolean; // beside a model: whether POS reads along
}

/** How to measure: by which method or network, over which windows, and whom. */
export class SessionConfig {
  readonly method: string;
  readonly model: PulseModel | null;
  readonly fps: number;
  readonly faces: "all" | "largest";
  readonly gated: boolean;
  readonly second: boolean;
  readonly windowTicks: number;
  readonly stepTicks: number;
  readonly windowS: number;

  constructor(readonly calibration: Calibration, choices: Choices = {}) {
    this.model = choices.model ?? null;
    this.method = this.model?.name ?? choices.method ?? "pos";
    this.fps = this.model?.fps ?? choices.fps ?? 30;
    this.faces = choices.faces ?? "all";
    this.gated = choices.gated ?? true;
    this.second = this.model !== null && (choices.second ?? true);
    this.windowS = choices.windowS ?? 10;
    this.windowTicks = rint(this.windowS * this.fps);
    this.stepTicks = Math.max(1, rint((choices.stepS ?? 1) * this.fps));
  }

  get delayTicks(): number {
    return this.model?.delayFrames ?? 0;
  }

  /** How much of each face is remembered. */
  get keepTicks(): number {
    return this.windowTicks + this.stepTicks + this.delayTicks + rint(SPARE_S * this.fps);
  }

  get cropPx(): number {
    return this.model?.size ?? CROP_PX;
  }
}
