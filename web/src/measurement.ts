/** One measurement, from start to stop: frames of the video element go to the worker, its answers to the view. */

import { Pacer } from "./capture/player";
import { Pump, type PumpedFrame } from "./capture/pump";
import type { Engine, FrameDone } from "./engine";
import type { Result } from "./session/document";
import { Collector } from "./session/offline";
import type { Event } from "./session/results";
import { note, Readout } from "./ui/readout";
import type { View } from "./ui/view";

const CAMERA_QUEUE = 2; // frames on their way to the worker; further ones are left out
const FILE_QUEUE = 4; // the video waits when so many are on their way
const SILENCE_MS = 2000; // without a picture from the camera, before the number is taken away

export type Kind = "camera" | "file";
export type Method = "pos" | "chrom";

export class Measurement {
  readonly warnings: string[] = [];
  private readonly readout = new Readout();
  private readonly collected = new Collector();
  private readonly pacer = new Pacer();
  private readonly pump: Pump;
  private readonly watchdog: number;
  private readonly arrivals: number[] = []; // of the last seconds, in ms
  private originS: number | null = null; // a session begins at 0 whatever the camera's clock says
  private lastS = 0;
  private tookMs = 0;
  private networkMs = 0;
  private windows = 0;
  private ended = false;

  constructor(
    readonly kind: Kind, private readonly name: string, private readonly methodName: string,
    private readonly engine: Engine, private readonly view: View, method?: Method,
  ) {
    engine.onFrame = (done) => this.frame(done);
    engine.begin(method);
    view.running(kind);
    view.canSave(0);
    this.pump = new Pump(view.video, (frame) => this.push(frame), (tS) => (kind === "file" ? this.pass(tS) : engine.inFlight < CAMERA_QUEUE));
    this.arrivals.push(performance.now());
    this.watchdog = window.setInterval(() => this.watch(), SILENCE_MS / 8);
    document.addEventListener("visibilitychange", this.turned);
  }

  /** What was measured so far. */
  get result(): Result {
    return { video: this.name, method: this.methodName, durationS: this.lastS, faces: this.collected.faces(), warnings: this.warnings };
  }

  /** Take no more frames. */
  halt(): void {
    this.ended = true;
    this.pump.stop();
    clearInterval(this.watchdog);
    document.removeEventListener("visibilitychange", this.turned);
  }

  /** Close the session: what is still on its way counts. */
  async end(): Promise<Result> {
    this.halt();
    this.keep((await this.engine.finish()).events);
    return this.result;
  }

  /** Every frame of a file counts: go back for those that were left out, and play slower. */
  private pass(tS: number): boolean {
    const { video } = this.view;
    const { take, rate, backTo } = this.pacer.see(tS);
    if (video.playbackRate !== rate) video.playbackRate = rate;
    if (backTo !== null) video.currentTime = backTo;
    return take;
  }

  private push({ picture, tS }: PumpedFrame): void {
    this.originS ??= this.kind === "camera" ? tS : 0;
    this.engine.push({ picture, tS: tS - this.originS });
    if (this.kind === "file" && this.engine.inFlight >= FILE_QUEUE) this.view.video.pause();
  }

  private frame(done: FrameDone): void {
    this.lastS = done.tS;
    this.keep(done.events, done.faces.map((face) => face.id));
    if (this.ended) return;
    if (this.kind === "file") this.playOn();
    const { view } = this;
    this.readout.take(done.events, done.tS, done.faces.map((face) => face.id));
    const { shown } = this.readout;
    view.show(shown);
    view.overlay.draw(done.width, done.height, done.faces, view.mask.checked, view.tone(shown.state));
    if (done.preview) view.plots.showWave(done.preview);
    if (done.events.some((event) => event.kind === "face" && (event.change === "lost" || event.change === "ended"))) view.plots.clearNow();
    this.pace(done);
  }

  private keep(events: readonly Event[], present?: readonly number[]): void {
    // Spectra are for the eye: keeping them would make an hour's session heavy.
    this.collected.take(events.map((event) => (event.kind === "window" ? { ...event, spectrum: [] } : event)));
    for (const event of events) {
      if (event.kind !== "window") continue;
      this.view.plots.showRate(event);
      if (present?.includes(event.face) ?? true) this.view.plots.showSpectrum(event); // a window outlives a face that goes
      this.view.canSave(++this.windows);
    }
  }

  private playOn(): void {
    const { video } = this.view;
    if (video.paused && !video.ended && !document.hidden && this.engine.inFlight <= 1) void video.play();
    this.view.progress(video.duration > 0 ? video.currentTime / video.duration : 0);
  }

  /** A tab in the background is not shown frames: a file waits until somebody looks again. */
  private readonly turned = (): void => {
    if (this.kind !== "file" || this.view.video.ended) return;
    if (document.hidden) this.view.video.pause();
    else if (this.engine.inFlight <= 1) void this.view.video.play();
  };

  /** A camera that sends nothing any more shows nobody's pulse. */
  private watch(): void {
    if (this.kind !== "camera" || performance.now() - this.arrivals[this.arrivals.length - 1] < SILENCE_MS) return;
    this.view.show(note("none", "no picture", "The camera sends no picture. Is its cover closed, or does another program use it?"));
    this.view.facts(null);
    this.view.overlay.clear();
    this.view.plots.clearNow();
  }

  /** Frame rate over the last seconds, and smoothed times. */
  private pace(done: FrameDone): void {
    const now = performance.now();
    this.arrivals.push(now);
    while (now - this.arrivals[0] > 3000) this.arrivals.shift();
    this.tookMs += 0.1 * (done.tookMs - this.tookMs);
    this.networkMs += 0.1 * (done.networkMs - this.networkMs);
    const spanS = (now - this.arrivals[0]) / 1000;
    if (spanS > 0.5 && this.arrivals.length % 8 === 0) this.view.facts({ fps: (this.arrivals.length - 1) / spanS, tookMs: this.tookMs, networkMs: this.networkMs });
  }
}
