/** The page: measures a camera or a file. All data stays in this browser. */

import wasm from "phase-rppg/assets/ort-wasm-simd-threaded.wasm?url";
import worker from "phase-rppg/assets/worker.js?url";
import { CameraError, csvText, type DecodedFile, document as toDocument, Engine, type FaceResult, listCameras, type NotDecodableError, openCamera, type Ready, type Result } from "phase-rppg";
import { registerOffline } from "./device/offline";
import { ScreenWakeLock } from "./device/wakeLock";
import { type Kind, Measurement, type Method } from "./measurement";
import { entryOf } from "./ui/history";
import { HistoryView } from "./ui/historyView";
import { note } from "./ui/readout";
import { loadSettings } from "./ui/settings";
import { cardHtml, cardPng, cardSvg } from "./ui/share";
import { guidance, type Key, t } from "./ui/texts";
import { View } from "./ui/view";

/** A measurement that has ended. */
interface Finished {
  readonly result: Result;
  readonly kind: Kind;
  readonly face: number | null; // the face that was shown large
  readonly note: (() => string) | null; // why it ended, in the language of the page
  readonly when: Date;
}

const $ = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const view = new View(loadSettings());
const engine = new Engine({ assets: "./", worker, wasm });
const screenLock = new ScreenWakeLock();
const history = new HistoryView($("history"), $("history-body"), (name, text, type) => view.save(name, text, type));
let running: Measurement | null = null;
let last: Finished | null = null;
let attempt = 0; // counts starts; an asynchronous start ends when a newer one exists

/** ?method=pos measures with the classical method instead of the network. */
function chosenMethod(): Method | undefined {
  const value = new URLSearchParams(location.search).get("method");
  return value === "pos" || value === "chrom" ? value : undefined;
}

/** Load the networks. */
async function ready(): Promise<Ready> {
  view.show(note("loading", "state.loading", t("loading.network")));
  return engine.load();
}

async function startCamera(id?: string): Promise<void> {
  const thisAttempt = ++attempt;
  view.start.disabled = true;
  view.turnTo("idle");
  try {
    const loaded = await ready();
    view.show(note("loading", "state.loading", t("loading.camera")));
    const stream = await openCamera(id);
    if (thisAttempt !== attempt) return stream.getTracks().forEach((track) => track.stop());
    const [track] = stream.getVideoTracks();
    track.addEventListener("ended", () => void stop("stopped.unplugged"));
    view.video.srcObject = stream;
    await view.video.play();
    await showCameras(track.getSettings().deviceId);
    if (thisAttempt !== attempt) return;
    running = new Measurement({ kind: "camera", name: "camera", decoded: null }, loaded, engine, view, chosenMethod());
    screenLock.hold();
    view.show(note("searching", "state.searching", guidance("NO_FACE"), "NO_FACE"));
  } catch (error) {
    if (thisAttempt === attempt) showFailure(error instanceof CameraError ? "state.no-camera" : "state.not-started", error);
  } finally {
    view.start.disabled = false;
  }
}

async function showCameras(current?: string): Promise<void> {
  view.cameras(await listCameras((number) => t("camera-number", { number })), current ?? view.camera.value);
}

async function openFile(file: File): Promise<void> {
  await stop();
  const thisAttempt = ++attempt;
  view.turnTo("idle");
  try {
    const loaded = await ready();
    const decoded = await decoder(file);
    if (thisAttempt !== attempt) return decoded instanceof Error ? undefined : decoded.close();
    releaseVideo();
    if (!(decoded instanceof Error)) {
      const measuring = (running = new Measurement({ kind: "file", name: file.name, decoded }, loaded, engine, view, chosenMethod()));
      measuring.onEnd = () => void fileEnded(measuring);
      return;
    }
    const { video } = view;
    video.src = URL.createObjectURL(file);
    await new Promise<void>((done, failed) => {
      video.onloadeddata = () => done();
      video.onerror = () => failed(new Error(t("file.unplayable", { name: file.name })));
    });
    if (thisAttempt !== attempt) return;
    const measuring = (running = new Measurement({ kind: "file", name: file.name, decoded: null }, loaded, engine, view, chosenMethod()));
    measuring.warnings.push(`the file was played, because it could not be decoded frame by frame (${decoded.message}); the numbers may differ a little each time`);
    video.onended = () => void fileEnded(measuring);
    video.onerror = () => {
      measuring.warnings.push("the video is damaged; it could not be played to its end");
      void fileEnded(measuring);
    };
    await video.play();
  } catch (error) {
    if (thisAttempt === attempt) showFailure("state.not-opened", error);
  }
}

/** Open a file for decoding, or return why it must be played. The demuxer is loaded when it is needed. */
async function decoder(file: File): Promise<DecodedFile | NotDecodableError> {
  const { openFile: open, NotDecodableError: NotDecodable } = await import("phase-rppg/file");
  try {
    return await open(file);
  } catch (error) {
    if (error instanceof NotDecodable) return error;
    throw error;
  }
}

async function fileEnded(done: Measurement): Promise<void> {
  if (running === done) await end(done, () => done.end());
}

/** Stop the measurement and show its result. */
async function stop(why: Key | null = null): Promise<void> {
  attempt += 1;
  const done = running;
  if (done) await end(done, () => done.end(), why === null ? null : () => t(why));
}

async function end(done: Measurement, result: () => Result | Promise<Result>, why: Finished["note"] = null): Promise<void> {
  running = null;
  const face = done.mainFace;
  done.halt();
  screenLock.release();
  releaseVideo(); // first, so that the camera switches off at once
  view.running(null);
  last = { result: await result(), kind: done.kind, face, note: why, when: new Date() };
  showResult(last);
  view.announceResult(last.result, face);
  await keep(last);
}

function showResult({ result, kind, face, note: why }: Finished): void {
  view.show(note("idle", "state.idle", t("idle.guidance")));
  view.result(result, kind, face, why?.() ?? null);
  view.saved(t("summary.kept"));
  const measured = result.faces.length > 0;
  for (const id of ["csv", "json", "html"]) $<HTMLButtonElement>(id).disabled = !measured;
  $<HTMLButtonElement>("png").disabled = !measured || cardSvg(result, mainFace(last!)!, last!.when) === null;
  $("share").hidden = !("share" in navigator) || $<HTMLButtonElement>("png").disabled;
}

const mainFace = ({ result, face }: Finished): FaceResult | undefined => result.faces.find(({ id }) => id === face) ?? result.faces[0];

/** Add the result to the history, if the user wants one. */
async function keep({ result, face, when }: Finished): Promise<void> {
  const entry = view.settings.history ? entryOf(result, face, when) : null;
  if (entry !== null) view.saved((await history.add(entry)) ?? t("summary.stored"));
}

function showFailure(label: Key, error: unknown): void {
  releaseVideo();
  screenLock.release();
  view.running(null);
  view.turnTo("idle");
  view.show(note("none", label, problemText(error)));
}

function problemText(error: unknown): string {
  if (error instanceof CameraError) return t(`camera.${error.code}`, { name: error.detail });
  return error instanceof Error ? error.message : String(error);
}

/** Release camera and file. */
function releaseVideo(): void {
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

const stem = (when: Date): string => `phase-live-${when.toISOString().slice(0, 19).replaceAll(":", "-")}`;

function save(kind: "csv" | "json" | "html"): void {
  if (!last) return;
  const { result, when } = last;
  if (kind === "csv") view.save(`${stem(when)}.csv`, csvText(result), "text/csv");
  else if (kind === "json") view.save(`${stem(when)}.json`, JSON.stringify(toDocument(result), null, 2), "application/json");
  else view.save(`${stem(when)}.html`, cardHtml(result, when), "text/html");
}

/** Make the picture of the result; `shared` hands it to the system's share sheet. */
async function savePicture(shared: boolean): Promise<void> {
  const face = last && mainFace(last);
  const svg = last && face ? cardSvg(last.result, face, last.when) : null;
  if (!last || svg === null) return;
  try {
    const png = await cardPng(svg);
    const name = `${stem(last.when)}.png`;
    const files = [new File([png], name, { type: "image/png" })];
    if (shared && navigator.canShare?.({ files })) await navigator.share({ files, title: t("summary") });
    else view.save(name, png, "image/png");
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) view.saved(t("save.failed")); // else the user closed the share sheet
  }
}

view.start.addEventListener("click", () => void (running ? stop() : startCamera(view.camera.value || undefined)));
view.camera.addEventListener("change", () => {
  if (running) void stop().then(() => startCamera(view.camera.value));
});
navigator.mediaDevices?.addEventListener?.("devicechange", () => void showCameras());
view.file.addEventListener("change", () => {
  const [file] = view.file.files ?? [];
  if (file) void openFile(file);
  view.file.value = "";
});
for (const kind of ["csv", "json", "html"] as const) $(kind).addEventListener("click", () => save(kind));
$("png").addEventListener("click", () => void savePicture(false));
$("share").addEventListener("click", () => void savePicture(true));
for (const name of ["dragover", "dragleave", "drop"] as const)
  window.addEventListener(name, (event) => {
    event.preventDefault();
    view.screen.classList.toggle("over", name === "dragover");
    const file = name === "drop" ? event.dataTransfer?.files[0] : undefined;
    if (file) void openFile(file);
  });
view.onSettings = (settings) => void history.show(settings.history);
view.onLanguage = () => {
  if (last && !running) showResult(last);
  else if (!running) view.show(note("idle", "state.idle", t("idle.guidance")));
  void history.show(view.settings.history);
};

engine.onFailed = (problem) => {
  attempt += 1;
  const done = running;
  // What was measured before the problem is kept; the worker cannot complete it.
  if (done && done.result.faces.length > 0) void end(done, () => done.result, () => problem);
  else {
    running = null;
    done?.halt();
    showFailure("state.problem", problem);
  }
};
engine.onLoading = (share) => view.progress(share);
engine.load().then(({ about }) => {
  view.about(about);
  registerOffline((reload) => view.offerUpdate(reload));
}, () => undefined).finally(() => view.progress(null));
void history.show(view.settings.history);
