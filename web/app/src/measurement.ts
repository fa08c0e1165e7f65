/** One measurement: sends frames to the worker and its results to the view. */

import { calibrationOf, Collector, type DecodedFile, type Engine, type Event, type FrameDone, Pacer, Pump, type PumpedFrame, type Ready, type Reason, type Result, type WindowResult } from "phase-rppg";
import { CameraLock } from "./device/cameraLock";
import { advice, Coach, type Meters } from "./ui/coach";
import { note, Readout, type Shown } from "./ui/readout";
import { busyGuidance, t } from "./ui/texts";
import { numberText, type View } from "./ui/view";

const MISSING_FRAMES: ReadonlySet<Reason> = new Set(["LOW_FPS", "BAD_TIMESTAMPS", "FACE_LOST"]); // a busy computer has the same effects
const FILE_QUEUE = 4; // decoding or playback waits at this queue length
const CAMERA_TIMEOUT_MS = 2000; // without a frame for this time the number is cleared
const COACH_EVERY_S = 0.1; // the meters of the picture are drawn at this interval
const PICTURE_EVERY_MS = 100; // a decoded file shows a frame at this interval

export type Kind = "camera" | "file";
export type Method = "pos" | "chrom";

export interface Source {
  readonly kind: Kind;
  readonly name: string;
  readonly decoded: DecodedFile | null; // null: the video element plays
}

export class Measurement {
  readonly warnings: string[] = [];
  readonly kind: Kind;
  onEnd: () => void = () => undefined; // a decoded file has no more frames
  private readonly readout = new Readout();
  private readonly coach: Coach;
  private readonly lock: CameraLock | null;
  private readonly windowsOf = new Map<number, WindowResult[]>(); // for the trend of each face
  private meters: Meters | null = null;
  private coachedS = -Infinity;
  private trendFace: number | null = null;
  private readonly collected: Collector;
  private readonly pacer = new Pacer();
  private readonly pump: Pump | null;
  private readonly watchdog: number;
  private readonly arrivals: number[] = []; // times of the last frames, in ms
  private readonly methodName: string;
  private originS: number | null = null; // the session of a camera starts at 0, whatever its clock
  private firstS: number | null = null;
  private lastS = 0;
  private frameCount = 0;
  private drawnMs = -Infinity;
  private tookMs = 0;
  private networkMs = 0;
  private ended = false;
  private wake: (() => void) | null = null; // continues decoding

  constructor(private readonly source: Source, ready: Ready, private readonly engine: Engine, private readonly view: View, method?: Method) {
    const { kind, decoded } = source;
    this.kind = kind;
    this.methodName = method ?? ready.method;
    const family = method ?? (ready.method === "pos" ? "pos" : "network");
    const calibration = calibrationOf(family, ready.calibrations);
    this.collected = new Collector(kind === "file" ? calibration : null);
    this.coach = new Coach(calibration);
    const [track] = kind === "camera" ? (view.video.srcObject as MediaStream).getVideoTracks() : [];
    this.lock = track ? new CameraLock(track) : null;
    engine.onFrame = (done) => this.frame(done);
    engine.start(method, kind === "file", view.settings.everyone);
    view.running(kind, decoded !== null);
    view.onChoose = (face) => this.choose(face);
    this.pump = decoded ? null : new Pump(view.video, {
      live: kind === "camera",
      take: (frame) => this.push(frame),
      accepts: (tS) => (kind === "file" ? this.acceptFileFrame(tS) : engine.backlog.accepts(performance.now())),
    });
    this.arrivals.push(performance.now());
    this.watchdog = window.setInterval(() => this.checkCamera(), CAMERA_TIMEOUT_MS / 8);
    document.addEventListener("visibilitychange", this.onVisibilityChange);
    if (decoded) void this.decode(decoded);
  }

  /** The result so far. */
  get result(): Result {
    const spanS = this.firstS === null ? 0 : this.lastS - this.firstS;
    const stepS = this.kind === "file" && this.frameCount > 1 ? spanS / (this.frameCount - 1) : 0; // the last frame is shown for one more step
    return { video: this.source.name, method: this.methodName, durationS: spanS + stepS, faces: this.collected.faces(), warnings: this.warnings };
  }

  /** The face that is shown large; null if none is visible. */
  get mainFace(): number | null {
    return this.readout.mainFace ?? this.trendFace;
  }

  /** Stop taking frames. */
  halt(): void {
    this.ended = true;
    this.pump?.stop();
    this.wake?.();
    clearInterval(this.watchdog);
    document.removeEventListener("visibilitychange", this.onVisibilityChange);
  }

  /** End the session, including frames in the queue. */
  async end(): Promise<Result> {
    this.halt();
    this.record((await this.engine.finish()).events);
    return this.result;
  }

  /** Send every frame of the file to the worker, as fast as it processes them. */
  private async decode(file: DecodedFile): Promise<void> {
    try {
      for await (const frame of file.frames()) {
        if (this.ended) {
          if ("close" in frame.picture) frame.picture.close();
          break;
        }
        this.showPicture(frame.picture);
        this.push(frame);
        this.view.progress(file.durationS > 0 ? Math.min(1, frame.tS / file.durationS) : 0);
        while (this.engine.inFlight >= FILE_QUEUE && !this.ended) await new Promise<void>((done) => { this.wake = done; });
      }
    } catch {
      this.warnings.push(`the video is damaged; it was measured up to ${this.lastS.toFixed(1)} s`);
    } finally {
      file.close();
    }
    if (!this.ended) this.onEnd();
  }

  private showPicture(picture: PumpedFrame["picture"]): void {
    const now = performance.now();
    if (now - this.drawnMs < PICTURE_EVERY_MS || "rgba" in picture) return;
    this.drawnMs = now;
    this.view.showPicture(picture);
  }

  /** Every frame of a played file is needed: seek back to skipped frames and play slower. */
  private acceptFileFrame(tS: number): boolean {
    const { video } = this.view;
    const { take, rate, seekToS } = this.pacer.update(tS);
    if (video.playbackRate !== rate) video.playbackRate = rate;
    if (seekToS !== null) video.currentTime = seekToS;
    return take;
  }

  private push({ picture, tS }: PumpedFrame): void {
    this.originS ??= this.kind === "camera" ? tS : 0;
    this.engine.push({ picture, tS: tS - this.originS });
    if (this.kind === "file" && this.pump && this.engine.inFlight >= FILE_QUEUE) this.view.video.pause();
  }

  private frame(done: FrameDone): void {
    this.firstS ??= done.tS;
    this.lastS = done.tS;
    this.frameCount += 1;
    this.record(done.events, done.faces.map((face) => face.id));
    this.wake?.();
    if (this.ended) return;
    if (this.kind === "file" && this.pump) this.resumePlayback();
    const { view } = this;
    this.readout.take(done.events, done.tS, done.faces);
    this.showTrend(false);
    if (this.kind === "camera") this.updateCoach(done);
    const shown = this.source.decoded ? this.decoding() : this.coached(this.readout.shown);
    view.show(shown);
    this.drawOverlay(done);
    if (done.preview && done.previewFace === this.readout.mainFace) view.plots.showWave(done.preview, shown.bpm, shown.share);
    if (this.readout.mainFace === null) view.plots.clearNow();
    this.showPerformance(done);
  }

  private drawOverlay({ width, height, faces, visibleCount }: FrameDone): void {
    const { view, readout } = this;
    const people = readout.people;
    const several = people.length > 1;
    view.overlay.draw(width, height, faces, view.settings.mask, this.kind === "camera", (face) => {
      const shown = people.find(({ id }) => id === face)?.shown;
      const number = shown ? numberText(shown) : "";
      const text = several ? [t("people.person", { number: face + 1 }), number].filter(Boolean).join(" · ") : number;
      return { colour: view.stateColour(shown?.state ?? "searching"), text: this.source.decoded ? "" : text, main: face === readout.mainFace };
    });
    if (!this.source.decoded) view.people(people, readout.mainFace, visibleCount);
  }

  /** Show another face large. */
  private choose(face: number): void {
    this.readout.choose(face);
    this.engine.focus(face);
    this.view.plots.clearNow();
    this.showTrend(true);
  }

  /** Draw the trend of the main face; all faces have their own. */
  private showTrend(changed: boolean): void {
    const face = this.readout.mainFace;
    if (face === null || (face === this.trendFace && !changed)) return;
    if (face !== this.trendFace) this.engine.focus(face);
    this.trendFace = face;
    this.view.plots.showTrend(this.windowsOf.get(face) ?? []);
  }

  /** Update light, distance, stillness and frame rate; they react within a few frames. */
  private updateCoach(done: FrameDone): void {
    const face = done.faces.find(({ id }) => id === this.readout.mainFace);
    this.meters = this.coach.update({ tS: done.tS, face: face?.sample ?? null, frameLuma: done.luma, fps: this.fps() });
    this.lock?.update(done.tS, this.meters);
    if (done.tS - this.coachedS < COACH_EVERY_S) return;
    this.coachedS = done.tS;
    this.view.coach(this.meters);
  }

  /** A bad picture is told at once, while there is no number. */
  private coached(shown: Shown): Shown {
    if (shown.bpm === null && this.computerIsBusy() && (shown.reason === undefined || MISSING_FRAMES.has(shown.reason)))
      return { ...shown, guidance: busyGuidance(), urgent: true };
    const urgent = shown.bpm === null && this.meters ? advice(this.meters) : null;
    return urgent === null ? shown : { ...shown, guidance: urgent, urgent: true };
  }

  /** A file is measured as a whole: a window also uses the seconds after it. */
  private decoding(): ReturnType<typeof note> {
    const { durationS } = this.source.decoded!;
    const share = durationS > 0 ? Math.min(1, this.lastS / durationS) : 0;
    return { ...note("measuring", "state.measuring", t("decoding", { name: this.source.name })), share };
  }

  private record(events: readonly Event[], present?: readonly number[]): void {
    // Spectra are only drawn; storing them would need much memory in a long session.
    this.collected.take(events.map((event) => (event.kind === "window" ? { ...event, spectrum: [] } : event)));
    for (const event of events) {
      if (event.kind !== "window") continue;
      const windows = this.windowsOf.get(event.face) ?? [];
      this.windowsOf.set(event.face, windows);
      windows.push({ ...event, spectrum: [] });
      if (event.face === this.trendFace) this.view.plots.showTrend(windows);
      const visible = present?.includes(event.face) ?? true; // the window may belong to a face that has left
      if (visible && event.face === this.readout.mainFace) this.view.plots.showSpectrum(event);
    }
  }

  private resumePlayback(): void {
    const { video } = this.view;
    if (video.paused && !video.ended && !document.hidden && this.engine.inFlight <= 1) void video.play();
    this.view.progress(video.duration > 0 ? video.currentTime / video.duration : 0);
  }

  /** A hidden tab gets no frames, so a played file pauses until the tab is visible. */
  private readonly onVisibilityChange = (): void => {
    if (this.kind !== "file" || !this.pump || this.view.video.ended) return;
    if (document.hidden) this.view.video.pause();
    else if (this.engine.inFlight <= 1) void this.view.video.play();
  };

  /** Whether frames are missing because of this computer, not because of camera or face. */
  private computerIsBusy(): boolean {
    return this.engine.backlog.busy(performance.now());
  }

  /** Clear the reading if the camera has stopped sending frames. */
  private checkCamera(): void {
    if (this.kind !== "camera" || performance.now() - this.arrivals[this.arrivals.length - 1] < CAMERA_TIMEOUT_MS) return;
    this.view.show(note("none", "state.no-picture", this.computerIsBusy() ? busyGuidance() : t("no-picture")));
    this.view.coach(null);
    this.view.facts(null);
    this.view.overlay.clear();
    this.view.plots.clearNow();
  }

  /** Frames per second of the last seconds; null at first. */
  private fps(): number | null {
    const spanS = (this.arrivals[this.arrivals.length - 1] - this.arrivals[0]) / 1000;
    return spanS > 0.5 ? (this.arrivals.length - 1) / spanS : null;
  }

  /** Show the frame rate of the last seconds and the smoothed processing times. */
  private showPerformance(done: FrameDone): void {
    const now = performance.now();
    this.arrivals.push(now);
    while (now - this.arrivals[0] > 3000) this.arrivals.shift();
    this.tookMs += 0.1 * (done.tookMs - this.tookMs);
    this.networkMs += 0.1 * (done.networkMs - this.networkMs);
    const fps = this.fps();
    if (fps !== null && this.arrivals.length % 8 === 0) this.view.facts({ fps, tookMs: this.tookMs, networkMs: this.networkMs });
  }
}
