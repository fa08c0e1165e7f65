/** The session of this package: frames in, events out. The work is done in a worker. */

import { Engine, type AssetUrls, type FrameDone, type Ready } from "./engine.js";
import { texts } from "./data.js";
import type { RawPicture } from "./protocol.js";
import { Collector, type FaceResult } from "./session/offline.js";
import type { Event as SessionEvent, WindowResult } from "./session/results.js";
import { isEstimate, type Reason, type Waveform } from "./types.js";

/** What the session is doing; `steady` and `settling` have a number, `refused` has a reason. */
export type State = "loading" | "searching" | "measuring" | "settling" | "steady" | "refused" | "stopped";

export interface StateDetail {
  readonly state: State;
  readonly reason: Reason | null;
  readonly guidance: string; // English advice for the person in front of the camera
  readonly busy: boolean; // this computer does not keep up with the camera
}

export interface WaveDetail {
  readonly face: number;
  readonly wave: Waveform; // the last seconds, filtered for display
}

/** The events of a session: each is a CustomEvent with this detail. */
export interface SessionEvents {
  readonly reading: WindowResult;
  readonly wave: WaveDetail;
  readonly state: StateDetail;
  readonly error: Error;
}

export interface SessionOptions extends AssetUrls {
  readonly method?: "pos" | "chrom"; // default: the bundled network
  readonly faces?: "largest" | "all"; // default: the largest face
}

type Listener<K extends keyof SessionEvents> = (event: CustomEvent<SessionEvents[K]>) => void;
export type FrameSource = VideoFrame | ImageBitmap | ImageData | RawPicture;

/**
 * Measures the faces in a sequence of frames.
 *
 *     const session = new Session();
 *     session.on("reading", ({ detail }) => console.log(detail.reading));
 *     session.push(new VideoFrame(video), video.currentTime);
 */
export class Session extends EventTarget {
  /** Resolves when the networks are loaded; frames before that are dropped. */
  readonly ready: Promise<Ready>;
  private readonly engine: Engine;
  private readonly collected = new Collector(null);
  private recent: WindowResult[] = [];
  private face: number | null = null;
  private loaded = false;
  private shown = "";

  constructor(options: SessionOptions = {}) {
    super();
    this.engine = new Engine(options);
    this.engine.onFrame = (done) => this.receive(done);
    this.engine.onFailed = (problem) => this.emit("error", new Error(problem));
    this.engine.onRestart = () => this.forget();
    this.ready = this.engine.load().then((ready) => {
      this.engine.start(options.method, false, options.faces === "all");
      this.loaded = true;
      this.tell("searching", "NO_FACE");
      return ready;
    });
    this.ready.catch(() => undefined); // told by the event "error"
    queueMicrotask(() => !this.loaded && this.tell("loading"));
  }

  /** Add a listener; a typed form of `addEventListener`. */
  on<K extends keyof SessionEvents>(name: K, listener: Listener<K>): this {
    this.addEventListener(name, listener as EventListener);
    return this;
  }

  /**
   * Send a frame with its time in seconds. Frames must be in order. Returns false if the frame was dropped, because
   * the networks are not loaded or the computer is busy. A VideoFrame or ImageBitmap is closed either way.
   */
  push(frame: FrameSource, tS: number): boolean {
    if (!this.loaded || !this.engine.backlog.accepts(performance.now())) {
      if ("close" in frame) frame.close();
      return false;
    }
    const picture = "data" in frame ? { rgba: frame.data.slice(), width: frame.width, height: frame.height } : frame;
    this.engine.push({ picture, tS });
    return true;
  }

  /** End the measurement and return a summary of every face. */
  async finish(): Promise<FaceResult[]> {
    this.loaded = false;
    this.take((await this.engine.finish()).events);
    this.forget();
    this.tell("stopped");
    return this.collected.faces();
  }

  /** End the worker. */
  close(): void {
    this.loaded = false;
    this.engine.close();
  }

  private receive({ events, faces, preview }: FrameDone): void {
    this.take(events);
    const visible = faces.map(({ id }) => id);
    if (this.face !== null && !visible.includes(this.face)) this.forget();
    this.face ??= visible[0] ?? null;
    if (preview && this.face !== null) this.emit("wave", { face: this.face, wave: preview });
    this.tellReading();
  }

  private take(events: readonly SessionEvent[]): void {
    this.collected.take(events.map((event) => (event.kind === "window" ? { ...event, spectrum: [] } : event)));
    for (const event of events) {
      if (event.kind !== "window") continue;
      if (event.face === this.face) this.recent = [...this.recent, event].slice(-texts.steady.windows);
      this.emit("reading", event);
    }
  }

  private tellReading(): void {
    const last = this.recent[this.recent.length - 1];
    if (this.face === null) return this.tell("searching", "NO_FACE");
    if (last === undefined) return this.tell("measuring");
    if (!isEstimate(last.reading)) return this.tell("refused", last.reading.reason);
    const rates = this.recent.map(({ reading }) => (isEstimate(reading) ? reading.bpm : NaN));
    const steady = rates.length === texts.steady.windows && Math.max(...rates) - Math.min(...rates) <= texts.steady.bpm;
    this.tell(steady ? "steady" : "settling");
  }

  private tell(state: State, reason: Reason | null = null): void {
    const busy = this.engine.backlog.busy(performance.now());
    const key = `${state} ${reason} ${busy}`;
    if (key === this.shown) return;
    this.shown = key;
    this.emit("state", { state, reason, busy, guidance: guidance(state, reason, busy) });
  }

  private forget(): void {
    this.face = null;
    this.recent = [];
  }

  private emit<K extends keyof SessionEvents>(name: K, detail: SessionEvents[K]): void {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function guidance(state: State, reason: Reason | null, busy: boolean): string {
  if (busy && state !== "steady") return texts.busy.guidance;
  if (reason !== null) return texts.reasons[reason].guidance;
  if (state === "steady") return texts.steady.guidance;
  return state === "settling" ? texts.unsure.guidance : "";
}
