/** The page's side of the worker: frames go in, at most a few at a time, results come out. */

import type { PumpedFrame } from "./capture/pump";
import type { FromWorker, ToWorker } from "./protocol";

export type FrameDone = Extract<FromWorker, { kind: "frame" }>;
export type Finished = Extract<FromWorker, { kind: "finished" }>;

export class Engine {
  inFlight = 0;
  onFrame: (done: FrameDone) => void = () => undefined;
  onLoading: (share: number) => void = () => undefined;
  onFailed: (problem: string) => void = () => undefined;
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private loaded = false;
  private loading: Promise<{ method: string; about: string }> | null = null;
  private settleLoad: { done(ready: { method: string; about: string }): void; failed(error: Error): void } | null = null;
  private settleFinish: ((finished: Finished) => void) | null = null;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.hear(data);
    this.worker.onerror = (event) => this.hear({ kind: "failed", problem: event.message || "the worker could not be started" });
  }

  /** Load the networks, once. */
  load(): Promise<{ method: string; about: string }> {
    this.loading ??= new Promise((done, failed) => {
      this.settleLoad = { done, failed };
      this.say({ kind: "load", base: new URL("./", document.baseURI).href });
    });
    return this.loading;
  }

  begin(method?: "pos" | "chrom"): void {
    this.inFlight = 0;
    this.say({ kind: "start", method });
  }

  push({ picture, tS }: PumpedFrame): void {
    this.inFlight += 1;
    this.say({ kind: "frame", picture, tS }, [picture]);
  }

  /** Close the session and give what was still open. */
  finish(): Promise<Finished> {
    return new Promise((done) => {
      this.settleFinish = done;
      this.say({ kind: "finish" });
    });
  }

  private say(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private hear(message: FromWorker): void {
    switch (message.kind) {
      case "loading": return this.onLoading(message.share);
      case "ready":
        this.loaded = true;
        return this.settleLoad?.done(message);
      case "frame":
        this.inFlight = Math.max(0, this.inFlight - 1);
        return this.onFrame(message);
      case "finished": return this.settleFinish?.(message);
      case "failed":
        this.settleLoad?.failed(new Error(message.problem));
        if (!this.loaded) this.loading = null; // the next start tries again
        return this.onFailed(message.problem);
    }
  }
}
