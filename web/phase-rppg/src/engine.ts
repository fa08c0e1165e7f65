/** The page's interface to the worker: sends frames and receives results. */

import { Backlog } from "./capture/backlog.js";
import type { PumpedFrame } from "./capture/pump.js";
import type { FromWorker, ToWorker } from "./protocol.js";

export type FrameDone = Extract<FromWorker, { kind: "frame" }>;
export type Ready = Extract<FromWorker, { kind: "ready" }>;
export type Finished = Extract<FromWorker, { kind: "finished" }>;

/** Addresses of the files that the package needs at run time, relative to the page. */
export interface AssetUrls {
  readonly assets?: string; // the folder `assets` of this package, or a copy of it; it holds `models/`
  readonly worker?: string; // default: worker.js in that folder
  readonly wasm?: string; // default: ort-wasm-simd-threaded.wasm in that folder
}

const HERE = import.meta.url; // a name of its own, so that bundlers do not treat the folder as a file

function resolve({ assets, worker, wasm }: AssetUrls): Required<AssetUrls> {
  const page = document.baseURI;
  const folder = assets === undefined ? new URL("../assets/", HERE) : new URL(assets.replace(/\/?$/, "/"), page);
  return {
    assets: folder.href,
    worker: worker === undefined ? new URL("worker.js", folder).href : new URL(worker, page).href,
    wasm: wasm === undefined ? new URL("ort-wasm-simd-threaded.wasm", folder).href : new URL(wasm, page).href,
  };
}

/** Folder and name of a file, for messages. */
const fileName = (url: string): string => new URL(url).pathname.split("/").slice(-2).join("/");

const ANSWER_MS = 10_000; // a worker that answers nothing for this time is dead
const CHECK_MS = 250;
const MAX_RESTARTS = 3; // of one session

type StartMessage = Extract<ToWorker, { kind: "start" }>;

/**
 * Runs the session in a worker. A worker that dies or fails during a camera session is replaced: the networks are
 * loaded again and the measurement begins anew. A file would lose frames, so it fails instead.
 */
export class Engine {
  readonly backlog = new Backlog();
  onRestart: () => void = () => undefined; // the worker was replaced
  onFrame: (done: FrameDone) => void = () => undefined;
  onLoading: (share: number) => void = () => undefined;
  onFailed: (problem: string) => void = () => undefined;
  private readonly urls: Required<AssetUrls>;
  private readonly timer: ReturnType<typeof setInterval>;
  private worker: Worker;
  private session: StartMessage | null = null; // of the running session
  private restarts = 0;
  private answeredMs = 0;
  private nextFace = 0; // a session that begins anew does not continue the faces of the old one
  private broken = false; // the worker cannot be used any more
  private loaded = false;
  private loading: Promise<Ready> | null = null;
  private settleLoad: { done(ready: Ready): void; failed(error: Error): void } | null = null;
  private settleFinish: ((finished: Finished) => void) | null = null;

  constructor(urls: AssetUrls = {}) {
    this.urls = resolve(urls);
    this.worker = this.newWorker();
    this.timer = setInterval(() => this.check(), CHECK_MS);
  }

  /** End the worker. */
  close(): void {
    clearInterval(this.timer);
    this.worker.terminate();
    this.session = null;
  }

  /** Frames in the queue of the worker. */
  get inFlight(): number {
    return this.backlog.length;
  }

  /** Load the networks once. */
  load(): Promise<Ready> {
    if (this.broken) this.replaceWorker();
    this.loading ??= new Promise((done, failed) => {
      this.settleLoad = { done, failed };
      this.post({ kind: "load", base: this.urls.assets, wasm: this.urls.wasm });
    });
    return this.loading;
  }

  /** Begin a session; `everyone`: of a camera, measure all faces and not only the largest. */
  start(method?: "pos" | "chrom", file = false, everyone = false): void {
    this.session = { kind: "start", method, file, everyone };
    this.restarts = this.nextFace = 0;
    this.begin(this.session);
  }

  /** Preview the waveform of this face. */
  focus(face: number): void {
    this.post({ kind: "focus", face });
  }

  push({ picture, tS }: PumpedFrame): void {
    this.backlog.sent(performance.now());
    this.post({ kind: "frame", picture, tS }, ["rgba" in picture ? picture.rgba.buffer as ArrayBuffer : picture]);
  }

  /** End the session and return the remaining events. */
  finish(): Promise<Finished> {
    this.session = null;
    this.answeredMs = performance.now();
    return new Promise((done) => {
      this.settleFinish = done;
      this.post({ kind: "finish" });
    });
  }

  private post(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private receive(message: FromWorker): void {
    switch (message.kind) {
      case "loading": return this.restarts === 0 ? this.onLoading(message.share) : undefined;
      case "ready":
        this.loaded = true;
        return this.settleLoad?.done(message);
      case "frame":
        this.backlog.answered();
        for (const { id } of message.faces) this.nextFace = Math.max(this.nextFace, id + 1);
        return this.onFrame(message);
      case "finished": return this.finished(message);
      case "failed": return this.failed(message.problem);
    }
  }

  private finished(message: Finished): void {
    this.settleFinish?.(message);
    this.settleFinish = null;
  }

  private newWorker(): Worker {
    const worker = new Worker(this.urls.worker);
    const current = (message: FromWorker): void => {
      if (worker !== this.worker) return; // of a worker that was replaced
      this.answeredMs = performance.now();
      this.receive(message);
    };
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => current(data);
    worker.onerror = (event) => current({ kind: "failed", problem: event.message || `${fileName(this.urls.worker)} could not be loaded; the page is not complete. Load it again.` });
    return worker;
  }

  private begin(session: StartMessage): void {
    this.backlog.clear();
    this.answeredMs = performance.now();
    this.post(session);
  }

  private failed(problem: string): void {
    if (this.loaded && this.session !== null && !this.session.file && this.restarts < MAX_RESTARTS) return this.restart();
    this.settleLoad?.failed(new Error(problem));
    if (!this.loaded) {
      this.loading = null; // the next start loads again
      this.broken = true;
    }
    this.session = null;
    this.finished({ kind: "finished", events: [], frameCount: 0, faceSeen: false });
    this.onFailed(problem);
  }

  /** Replace the worker and begin the session anew. */
  private restart(): void {
    this.restarts += 1;
    this.replaceWorker();
    void this.load().catch(() => undefined); // a failure is reported by onFailed
    this.begin({ ...this.session!, firstFace: this.nextFace });
    this.onRestart();
  }

  private replaceWorker(): void {
    this.worker.terminate();
    this.worker = this.newWorker();
    this.loaded = this.broken = false;
    this.loading = null;
    this.backlog.clear();
  }

  /** Notice stalls of the page, and a worker that does not answer any more. */
  private check(): void {
    const now = performance.now();
    this.backlog.tick(document.hidden ? null : now, CHECK_MS);
    const waiting = this.backlog.length > 0 || this.settleFinish !== null;
    if (!this.loaded || !waiting || now - this.answeredMs < ANSWER_MS) return;
    if (this.session === null || this.session.file) this.loaded = false; // the next measurement needs another worker
    this.failed("The worker of this page has stopped. Start again; if it happens again, close other programs.");
  }
}
