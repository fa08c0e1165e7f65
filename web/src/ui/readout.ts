/** From events to what is shown: a number, or an honest none. Nothing here touches the document. */

import type { Event, WindowResult } from "../session/results";
import { isEstimate, type Reason } from "../types";
import { GUIDANCE, hint, STEADY, UNSURE } from "./words";

export type LiveState = "idle" | "loading" | "searching" | "measuring" | "steady" | "unsure" | "none";

export interface Shown {
  readonly state: LiveState;
  readonly label: string; // the state in one or two words
  readonly bpm: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly share: number; // 0–1: how sure, or while measuring how much is there
  readonly guidance: string;
  readonly reason?: Reason; // why there is no number, when the gate refused it
}

/** A state without a number. */
export const note = (state: LiveState, label: string, guidance: string, reason?: Reason): Shown =>
  ({ state, label, guidance, reason, bpm: null, low: null, high: null, share: 0 });

const NEEDED_S = 10; // of a face, before the first window is full
const PAUSE_S = 2; // after a longer pause of the picture the number before it is no longer true

const FILLING: ReadonlySet<Reason> = new Set(["FACE_LOST", "NO_FACE", "TOO_SHORT", "BAD_TIMESTAMPS"]); // a window that is not full yet

/** Remembers the last few windows of the face that is in view, and forgets them when it goes. */
export class Readout {
  private face: number | null = null;
  private facedS = 0; // since when the face is in view
  private recent: WindowResult[] = [];
  private nowS = 0;

  /** Take in what one frame brought, and who is in the picture now. */
  take(events: readonly Event[], tS: number, present: readonly number[]): void {
    if (tS - this.nowS > PAUSE_S) {
      this.recent = [];
      this.facedS = tS;
    }
    this.nowS = tS;
    for (const event of events) {
      if (event.kind === "face") this.seen(event.face, event.change, event.tS);
      if (event.kind === "window" && event.face === this.face) this.recent = [...this.recent, event].slice(-STEADY.windows);
    }
    if (this.face !== null && !present.includes(this.face)) this.forget(); // the picture changed its shape: everything begins anew
  }

  get shown(): Shown {
    if (this.face === null) return note("searching", "no face", GUIDANCE.NO_FACE, "NO_FACE");
    const last = this.recent[this.recent.length - 1];
    const facedForS = this.nowS - this.facedS;
    const early = !last || (!isEstimate(last.reading) && facedForS < NEEDED_S && FILLING.has(last.reading.reason));
    if (early) {
      const togo = Math.max(1, Math.ceil(NEEDED_S - facedForS));
      return { ...note("measuring", "measuring", `Hold still: ${togo} s to go.`), share: Math.min(1, facedForS / NEEDED_S) };
    }
    const { reading, quality } = last;
    if (!isEstimate(reading)) return { ...note("none", "no reading", GUIDANCE[reading.reason], reading.reason), share: reading.pOk };
    const steady = this.isSteady();
    return {
      state: steady ? "steady" : "unsure",
      label: steady ? "steady" : "unsure",
      bpm: reading.bpm, low: reading.low, high: reading.high, share: reading.pOk,
      guidance: hint(quality) ?? (steady ? STEADY : UNSURE).guidance,
    };
  }

  private isSteady(): boolean {
    const rates = this.recent.map(({ reading }) => (isEstimate(reading) ? reading.bpm : NaN));
    return rates.length === STEADY.windows && Math.max(...rates) - Math.min(...rates) <= STEADY.bpm;
  }

  private seen(face: number, change: string, tS: number): void {
    if (change === "appeared" || change === "returned") {
      this.face = face;
      this.facedS = tS;
      this.recent = [];
    } else if (face === this.face) this.forget();
  }

  private forget(): void {
    this.face = null;
    this.recent = [];
  }
}

/** The same in words for those who listen: a voice need not read every second, so the number is rounded while it moves. */
export function spoken({ state, label, bpm, guidance }: Shown): string {
  if (state === "measuring") return "Measuring. Hold still.";
  if (bpm === null || state === "unsure") return `${label}. ${guidance}`;
  if (label !== "steady") return `${label}: ${Math.round(bpm)} beats per minute. ${guidance}`;
  return `Steady at ${Math.round(bpm / 5) * 5} beats per minute, roughly.`;
}
