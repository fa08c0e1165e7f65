/** Options of a session; a port of session/config.py. */

import { reference } from "../data.js";
import { CROP_PX } from "../face/crop.js";
import { rint } from "../signal/arrays.js";
import type { Calibration } from "./calibration.js";
import { BATCH, FILE_BATCH } from "./networkFeeder.js";
import type { PulseModel } from "./pulseModel.js";

export const CONTEXT_S = reference.config.CONTEXT_S; // `contextS` for files
const SPARE_S = reference.config.SPARE_S; // history beyond window and step, for delayed network output

export interface Choices {
  readonly method?: "pos" | "chrom";
  readonly model?: PulseModel | null; // a streaming network replaces the method
  readonly windowS?: number;
  readonly stepS?: number;
  readonly fps?: number; // rate of the uniform clock; a model sets its own
  readonly faces?: "all" | "largest";
  readonly gated?: boolean;
  readonly contextS?: number; // signal before and after a window that its rate uses; delays the results
  readonly second?: boolean; // with a model: whether POS is combined with it
}

/** Method or network, windows, and faces of a session. */
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
  readonly contextTicks: number;

  constructor(readonly calibration: Calibration, choices: Choices = {}) {
    this.model = choices.model ?? null;
    this.method = this.model?.name ?? choices.method ?? "pos";
    this.fps = this.model?.fps ?? choices.fps ?? 30;
    this.faces = choices.faces ?? "all";
    this.gated = choices.gated ?? true;
    this.second = this.model !== null && (choices.second ?? true);
    this.windowS = choices.windowS ?? 10;
    this.contextTicks = rint((choices.contextS ?? 0) * this.fps);
    this.windowTicks = rint(this.windowS * this.fps);
    this.stepTicks = Math.max(1, rint((choices.stepS ?? 1) * this.fps));
  }

  get delayTicks(): number {
    return this.model?.delayFrames ?? 0;
  }

  /** Length of the history of each face. */
  get keepTicks(): number {
    return this.windowTicks + 2 * this.contextTicks + this.stepTicks + this.delayTicks + rint(SPARE_S * this.fps);
  }

  /** Crops per call of the network: more of them if the results are late anyway. */
  get batch(): number {
    return this.contextTicks > 0 ? FILE_BATCH : BATCH;
  }

  get cropPx(): number {
    return this.model?.size ?? CROP_PX;
  }
}
