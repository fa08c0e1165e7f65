/** The reading on the page, from the events of a session. It does not access the document. */

import { type Event, isEstimate, type Reading, type Reason, type WindowResult } from "phase-rppg";
import { guidance, hint, type Key, measuringGuidance, percent, settlingGuidance, STEADY, steadyGuidance, t } from "./texts";

export type LiveState = "idle" | "loading" | "searching" | "measuring" | "steady" | "unsure" | "none";

export interface Shown {
  readonly state: LiveState;
  readonly label: string; // the state in one or two words
  readonly bpm: number | null; // a rate that passed the gate
  readonly about: number | null; // a provisional or refused rate, never shown as a reading
  readonly low: number | null;
  readonly high: number | null;
  readonly share: number; // 0–1: probability, or progress while measuring
  readonly guidance: string;
  readonly reason?: Reason; // why the gate refused the window
  readonly urgent?: boolean; // the guidance is about the picture of this moment
}

/** Return a display without a number. */
export const note = (state: LiveState, label: Key, text: string, reason?: Reason): Shown =>
  ({ state, label: t(label), guidance: text, reason, bpm: null, about: null, low: null, high: null, share: 0 });

const ANNOUNCE = { bpm: 3, everyMs: 30_000, pauseMs: 4000 }; // a smaller change waits for everyMs, another text of the same state for pauseMs
const NEEDED_S = 10; // of a face, before the first window is complete
const PAUSE_S = 2; // a longer gap between frames invalidates the previous number

const FILLING: ReadonlySet<Reason> = new Set(["FACE_LOST", "NO_FACE", "TOO_SHORT", "BAD_TIMESTAMPS"]); // reasons of a window that is not complete

/** A face in view, with a reading from before its first window if there is one. */
export interface Present {
  readonly id: number;
  readonly box: readonly [number, number, number, number];
  readonly provisional?: Reading | null; // absent: not computed in this frame
}

export interface PersonShown {
  readonly id: number;
  readonly shown: Shown;
}

/** One face: its last windows, until it leaves. */
class FaceReadout {
  private recent: WindowResult[] = [];
  private provisional: Reading | null = null;

  constructor(private sinceS: number) {}

  restart(tS: number): void {
    this.recent = [];
    this.provisional = null;
    this.sinceS = tS;
  }

  window(result: WindowResult): void {
    this.recent = [...this.recent, result].slice(-STEADY.windows);
  }

  early(reading: Reading | null): void {
    this.provisional = reading;
  }

  shown(nowS: number): Shown {
    const last = this.recent[this.recent.length - 1];
    const visibleS = nowS - this.sinceS;
    const early = !last || (!isEstimate(last.reading) && visibleS < NEEDED_S && FILLING.has(last.reading.reason));
    if (early) return this.measuring(visibleS);
    const { reading, quality } = last;
    if (!isEstimate(reading)) return refused(reading);
    const steady = this.isSteady();
    return {
      ...note(steady ? "steady" : "unsure", steady ? "state.steady" : "state.settling", hint(quality) ?? (steady ? steadyGuidance() : settlingGuidance())),
      bpm: reading.bpm, low: reading.low, high: reading.high, share: reading.pOk,
    };
  }

  private measuring(visibleS: number): Shown {
    const seconds = Math.max(1, Math.ceil(NEEDED_S - visibleS));
    const share = Math.min(1, visibleS / NEEDED_S);
    const found = this.provisional;
    if (found === null || !isEstimate(found)) return { ...note("measuring", "state.measuring", measuringGuidance(seconds)), share };
    const bpm = Math.round(found.bpm);
    return { ...note("measuring", "state.provisional", t("provisional.text", { bpm, seconds })), about: found.bpm, share };
  }

  private isSteady(): boolean {
    const rates = this.recent.map(({ reading }) => (isEstimate(reading) ? reading.bpm : NaN));
    return rates.length === STEADY.windows && Math.max(...rates) - Math.min(...rates) <= STEADY.bpm;
  }
}

/** A refused window shows its rate only if it is likely, and never as a reading. */
function refused(reading: Exclude<Reading, { bpm: number }>): Shown {
  const { reason, pOk, pAlive = 0, probableBpm } = reading;
  if (probableBpm === undefined) return { ...note("none", "state.none", guidance(reason), reason), share: pOk };
  const share = pOk * pAlive; // a pulse is present and its rate is right
  const likely = t("probable.text", { bpm: Math.round(probableBpm), percent: percent(share) });
  return { ...note("none", "state.probable", `${likely} ${guidance(reason)}`, reason), about: probableBpm, share };
}

/** Keeps the readings of all visible faces; one of them is shown large. */
export class Readout {
  private readonly faces = new Map<number, FaceReadout>();
  private present: readonly Present[] = [];
  private main: number | null = null;
  private nowS = 0;

  /** Process the events of one frame and the visible faces. */
  take(events: readonly Event[], tS: number, present: readonly Present[]): void {
    if (tS - this.nowS > PAUSE_S) this.faces.forEach((face) => face.restart(tS));
    this.nowS = tS;
    this.present = present;
    for (const event of events) {
      if (event.kind === "face") this.faceChanged(event.face, event.change, event.tS);
      if (event.kind === "window") this.faces.get(event.face)?.window(event);
    }
    for (const { id, provisional } of present) if (provisional !== undefined) this.faces.get(id)?.early(provisional);
    // The frame size may have changed, so that the session restarted without an event.
    for (const id of [...this.faces.keys()]) if (present.every((face) => face.id !== id)) this.faces.delete(id);
    if (this.main === null || !this.faces.has(this.main)) this.main = this.largest();
  }

  /** The face that is shown large; null if none is visible. */
  get mainFace(): number | null {
    return this.main;
  }

  /** Show another face large. */
  choose(face: number): void {
    if (this.faces.has(face)) this.main = face;
  }

  get shown(): Shown {
    return this.of(this.main);
  }

  /** All visible faces in the order of their numbers. */
  get people(): PersonShown[] {
    return [...this.faces.keys()].sort((a, b) => a - b).map((id) => ({ id, shown: this.of(id) }));
  }

  private of(id: number | null): Shown {
    const face = id === null ? undefined : this.faces.get(id);
    return face?.shown(this.nowS) ?? note("searching", "state.searching", guidance("NO_FACE"), "NO_FACE");
  }

  private largest(): number | null {
    const area = ({ box: [, , width, height] }: Present): number => width * height;
    const known = this.present.filter(({ id }) => this.faces.has(id));
    return known.length === 0 ? null : known.reduce((best, face) => (area(face) > area(best) ? face : best)).id;
  }

  private faceChanged(face: number, change: string, tS: number): void {
    if (change === "appeared" || change === "returned") this.faces.set(face, new FaceReadout(tS));
    else this.faces.delete(face);
  }
}

/** Return the text for screen readers. */
export function announcement({ state, label, bpm, about, guidance: text, urgent }: Shown): string {
  if (urgent) return `${label}. ${text}`;
  if (state === "measuring") return about === null ? t("say.measuring") : t("say.provisional", { bpm: Math.round(about) });
  if (bpm === null || state === "unsure") return `${label}. ${text}`;
  if (state !== "steady" || label !== t("state.steady")) return t("say.number", { label, bpm: Math.round(bpm), guidance: text });
  return t("say.steady", { bpm: Math.round(bpm) });
}

/** Decides when a screen reader hears the number again: at another state, after a clear change, or after a while. */
export class Announcer {
  private text = "";
  private label = "";
  private bpm: number | null = null;
  private saidMs = -Infinity;

  /** Return the text to say now, or null. */
  update(shown: Shown, nowMs: number): string | null {
    const text = announcement(shown);
    if (text === this.text) return null;
    const rate = shown.bpm ?? shown.about;
    const change = rate === null || this.bpm === null ? null : Math.abs(rate - this.bpm);
    const waitMs = change === null ? ANNOUNCE.pauseMs : change < ANNOUNCE.bpm ? ANNOUNCE.everyMs : 0;
    if (shown.label === this.label && nowMs - this.saidMs < waitMs) return null;
    [this.text, this.label, this.bpm, this.saidMs] = [text, shown.label, rate, nowMs];
    return text;
  }
}
