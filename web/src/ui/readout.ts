/** From events to what is shown: a number, or an honest none. Nothing here touches the document. */

import type { Event, WindowResult } from "../pipeline/result";
import { isEstimate } from "../types";
import { ADVICE, hint } from "./words";

export type Mood = "idle" | "loading" | "searching" | "measuring" | "steady" | "unsure" | "none";

export interface Shown {
  readonly mood: Mood;
  readonly label: string; // the state in one or two words
  readonly bpm: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly share: number; // 0–1: how sure, or while measuring how much is there
  readonly guidance: string;
}

const STEADY_WINDOWS = 3; // so many readings in a row …
const STEADY_BPM = 5; // … that agree within this are a steady rate
const NEEDED_S = 10; // of a face, before the first window is full

/** Remembers the last few windows of the face that is in view, and forgets them when it goes. */
export class Readout {
  private face: number | null = null;
  private facedS = 0; // since when the face is in view
  private recent: WindowResult[] = [];
  private nowS = 0;

  /** Take in what one frame brought. */
  take(events: readonly Event[], tS: number): void {
    this.nowS = tS;
    for (const event of events) {
      if (event.kind === "face") this.seen(event.face, event.change, event.tS);
      if (event.kind === "window" && event.face === this.face) this.recent = [...this.recent, event].slice(-STEADY_WINDOWS);
    }
  }

  get shown(): Shown {
    const none = { bpm: null, low: null, high: null, share: 0 };
    if (this.face === null) return { ...none, mood: "searching", label: "no face", guidance: ADVICE.NO_FACE };
    const last = this.recent[this.recent.length - 1];
    const facedForS = this.nowS - this.facedS;
    const early = !last || (!isEstimate(last.reading) && facedForS < NEEDED_S && ["FACE_LOST", "NO_FACE", "TOO_SHORT"].includes(last.reading.reason));
    if (early) {
      const togo = Math.max(1, Math.ceil(NEEDED_S - facedForS));
      return { ...none, mood: "measuring", label: "measuring", share: Math.min(1, facedForS / NEEDED_S), guidance: `Hold still: ${togo} s to go.` };
    }
    const { reading, quality } = last;
    if (!isEstimate(reading)) return { ...none, mood: "none", label: "no reading", guidance: ADVICE[reading.reason], share: reading.pOk };
    const steady = this.isSteady();
    return {
      mood: steady ? "steady" : "unsure",
      label: steady ? "steady" : "unsure",
      bpm: reading.bpm, low: reading.low, high: reading.high, share: reading.pOk,
      guidance: hint(quality) ?? (steady ? "Steady reading. Stay as you are." : "Settling. Hold still for a few more seconds."),
    };
  }

  private isSteady(): boolean {
    const rates = this.recent.map(({ reading }) => (isEstimate(reading) ? reading.bpm : NaN));
    return rates.length === STEADY_WINDOWS && Math.max(...rates) - Math.min(...rates) <= STEADY_BPM;
  }

  private seen(face: number, change: string, tS: number): void {
    if (change === "appeared" || change === "returned") {
      this.face = face;
      this.facedS = tS;
      this.recent = [];
    } else if (face === this.face) {
      this.face = null;
      this.recent = [];
    }
  }
}
