/** The page: camera or file in, reading out. Everything stays in this tab. */

import { CameraError, listCameras, openCamera } from "./capture/camera";
import { Pacer } from "./capture/player";
import { Pump } from "./capture/pump";
import { Engine, type FrameDone } from "./engine";
import { csvText, document as toDocument, type Result } from "./pipeline/document";
import { Collector } from "./pipeline/offline";
import { Readout, type Shown } from "./ui/readout";
import { View } from "./ui/view";
import { ADVICE } from "./ui/words";

const CAMERA_QUEUE = 2; // frames on their way to the worker; further ones are left out
const FILE_QUEUE = 4; // the video waits when so many are on their way

const view = new View();
const engine = new Engine();
let running: Running | null = null;
let last: Result | null = null;

const note = (mood: Shown["mood"], label: string, guidance: string): Shown =>
  ({ mood, label, guidance, bpm: null, low: null, high: null, share: 0 });

/** One measurement, from start to stop. */
class Running {
  private readonly readout = new Readout();
  private readonly collected = new Collector();
  private readonly pacer = new Pacer();
  private pump: Pump | null = null;
  private readonly times: number[] = [];
  private tookMs = 0;
  private networkMs = 0;
  private windows = 0;
  private firstS: number | null = null;
  private lastS = 0;
  private ended = false;

  constructor(readonly kind: "camera" | "file", private readonly name: string, private readonly method: string) {
    engine.onFrame = (done) => this.frame(done);
    engine.begin(query("method"));
    view.running(kind);
    view.canSave(0);
    this.pump = new Pump(view.video, (frame) => this.push(frame), (tS) => (kind === "file" ? this.pass(tS) : engine.inFlight < CAMERA_QUEUE));
  }

  /** Every frame of a file counts: go back for those that were left out, and play slower. */
  private pass(tS: number): boolean {
    const { take, rate, backTo } = this.pacer.see(tS);
    if (view.video.playbackRate !== rate) view.video.playbackRate = rate;
    if (backTo !== null) view.video.currentTime = backTo;
    return take;
  }

  private push(frame: Parameters<Engine["push"]>[0]): void {
    engine.push(frame);
    if (this.kind === "file" && engine.inFlight >= FILE_QUEUE) view.video.pause();
  }

  private frame(done: FrameDone): void {
    if (this.ended) return;
    this.firstS ??= done.tS;
    this.lastS = done.tS;
    if (this.kind === "file") {
      if (view.video.paused && !view.video.ended && engine.inFlight <= 1) void view.video.play();
      view.progress(view.video.duration > 0 ? view.video.currentTime / view.video.duration : 0);
    }
    this.collected.take(done.events);
    this.readout.take(done.events, done.tS);
    const { shown } = this.readout;
    view.show(shown);
    view.overlay.draw(done.width, done.height, done.faces, view.mask.checked, view.tone(shown.mood));
    if (done.preview) view.plots.showWave(done.preview);
    if (done.events.some((event) => event.kind === "face" && (event.change === "lost" || event.change === "ended"))) view.plots.clearNow();
    for (const event of done.events) {
      if (event.kind !== "window") continue;
      view.plots.showWindow(event);
      view.canSave(++this.windows);
    }
    this.pace(done);
    last = null; // made anew when it is asked for
  }

  /** Frame rate over the last seconds, and smoothed times. */
  private pace(done: FrameDone): void {
    const now = performance.now();
    this.times.push(now);
    while (now - this.times[0] > 3000) this.times.shift();
    this.tookMs += 0.1 * (done.tookMs - this.tookMs);
    this.networkMs += 0.1 * (done.networkMs - this.networkMs);
    const spanS = (now - this.times[0]) / 1000;
    if (spanS > 0.5 && this.times.length % 8 === 0) view.facts((this.times.length - 1) / spanS, this.tookMs, this.networkMs);
  }

  /** What was measured so far. */
  get result(): Result {
    const warnings: string[] = [];
    return { video: this.name, method: this.method, durationS: this.firstS === null ? 0 : this.lastS - this.firstS, faces: this.collected.faces(), warnings };
  }

  async end(): Promise<Result> {
    this.pump?.stop();
    this.ended = true;
    const { events } = await engine.finish();
    this.collected.take(events);
    for (const event of events) if (event.kind === "window") this.windows += 1;
    view.canSave(this.windows);
    return this.result;
  }
}

/** ?method=pos measures with the classical method instead of the network. */
function query(name: string): "pos" | "chrom" | undefined {
  const value = new URLSearchParams(location.search).get(name);
  return value === "pos" || value === "chrom" ? value : undefined;
}

async function ready(): Promise<string> {
  view.show(note("loading", "starting", "Loading the network …"));
  const { method } = await engine.load();
  return query("method") ?? method;
}

async function startCamera(id?: string): Promise<void> {
  view.start.disabled = true;
  try {
    const [method, stream] = await Promise.all([ready(), openCamera(id)]);
    const [track] = stream.getVideoTracks();
    track.addEventListener("ended", () => void stop("The camera was unplugged or taken away. Start again when it is back."));
    view.video.srcObject = stream;
    view.cameras(await listCameras(), track.getSettings().deviceId ?? "");
    await view.video.play();
    running = new Running("camera", "camera", method);
    view.show(note("searching", "no face", ADVICE.NO_FACE));
  } catch (error) {
    release();
    view.running(null);
    view.show(note("none", error instanceof CameraError ? "no camera" : "not started", message(error)));
  } finally {
    view.start.disabled = false;
  }
}

async function openFile(file: File): Promise<void> {
  await stop();
  try {
    const method = await ready();
    view.video.srcObject = null;
    view.video.src = URL.createObjectURL(file);
    await new Promise<void>((done, failed) => {
      view.video.onloadeddata = () => done();
      view.video.onerror = () => failed(new Error(`${file.name}: this browser cannot play it. Try MP4 (H.264) or WebM, or use phase measure.`));
    });
    view.video.onended = () => void fileEnded();
    running = new Running("file", file.name, method);
    await view.video.play();
  } catch (error) {
    release();
    view.running(null);
    view.show(note("none", "not opened", message(error)));
  }
}

async function fileEnded(): Promise<void> {
  const done = running;
  if (!done || done.kind !== "file") return;
  running = null;
  last = await done.end();
  release();
  view.running(null);
  view.report(last);
  const [face] = last.faces;
  const { summary } = face ?? { summary: null };
  if (summary && "bpm" in summary) view.show({ mood: "steady", label: "whole video", bpm: summary.bpm, low: summary.low, high: summary.high, share: summary.pOk, guidance: "The report is below." });
  else view.show(note("none", "no reading", summary ? ADVICE[summary.reason] : ADVICE.NO_FACE));
}

async function stop(why = "Stopped. The numbers are kept until you close this tab."): Promise<void> {
  const done = running;
  if (!done) return;
  running = null;
  last = await done.end();
  release();
  view.running(null);
  view.show(note("idle", "stopped", why));
}

/** Let go of camera and file. */
function release(): void {
  const { video } = view;
  video.onended = video.onerror = video.onloadeddata = null;
  video.playbackRate = 1;
  video.pause();
  (video.srcObject as MediaStream | null)?.getTracks().forEach((track) => track.stop());
  video.srcObject = null;
  if (video.src) {
    URL.revokeObjectURL(video.src);
    video.removeAttribute("src");
    video.load();
  }
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function save(kind: "csv" | "json"): void {
  const result = running?.result ?? last;
  if (!result) return;
  const stem = `phase-live-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}`;
  if (kind === "csv") view.save(`${stem}.csv`, csvText(result), "text/csv");
  else view.save(`${stem}.json`, JSON.stringify(toDocument(result), null, 2), "application/json");
}

view.start.addEventListener("click", () => void (running ? stop() : startCamera()));
view.camera.addEventListener("change", () => void stop().then(() => startCamera(view.camera.value)));
view.file.addEventListener("change", () => {
  const [file] = view.file.files ?? [];
  if (file) void openFile(file);
  view.file.value = "";
});
view.csv.addEventListener("click", () => save("csv"));
view.json.addEventListener("click", () => save("json"));
for (const name of ["dragover", "dragleave", "drop"] as const)
  window.addEventListener(name, (event) => {
    event.preventDefault();
    view.screen.classList.toggle("over", name === "dragover");
    const file = name === "drop" ? event.dataTransfer?.files[0] : undefined;
    if (file) void openFile(file);
  });

engine.onFailed = (problem) => {
  void stop(problem);
  view.show(note("none", "problem", problem));
};
engine.load().then(({ about }) => view.about(about), () => undefined);
