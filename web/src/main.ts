/** The page: camera or file in, reading out. Everything stays in this tab. */

import { CameraError, listCameras, openCamera } from "./capture/camera";
import { Engine } from "./engine";
import { Measurement, type Method } from "./measurement";
import { csvText, document as toDocument, type Result } from "./session/document";
import { note } from "./ui/readout";
import { View } from "./ui/view";
import { GUIDANCE } from "./ui/words";

const view = new View();
const engine = new Engine();
let running: Measurement | null = null;
let last: Result | null = null;
let attempt = 0; // the newest wish of the person; older ones give up

/** ?method=pos measures with the classical method instead of the network. */
function chosenMethod(): Method | undefined {
  const value = new URLSearchParams(location.search).get("method");
  return value === "pos" || value === "chrom" ? value : undefined;
}

/** Load the networks and give the name of what will measure. */
async function ready(): Promise<string> {
  if (!("requestVideoFrameCallback" in HTMLVideoElement.prototype))
    throw new Error("This browser is too old to hand out single video frames. Update it, or use another one.");
  view.show(note("loading", "starting", "Loading the network …"));
  const { method } = await engine.load();
  return chosenMethod() ?? method;
}

async function startCamera(id?: string): Promise<void> {
  const mine = ++attempt;
  view.start.disabled = true;
  try {
    const method = await ready();
    view.show(note("loading", "starting", "Allow the camera when the browser asks."));
    const stream = await openCamera(id);
    if (mine !== attempt) return stream.getTracks().forEach((track) => track.stop());
    const [track] = stream.getVideoTracks();
    track.addEventListener("ended", () => void stop("The camera was unplugged or taken away. Start again when it is back."));
    view.video.srcObject = stream;
    await view.video.play();
    await showCameras(track.getSettings().deviceId);
    if (mine !== attempt) return;
    running = new Measurement("camera", "camera", method, engine, view, chosenMethod());
    view.show(note("searching", "no face", GUIDANCE.NO_FACE, "NO_FACE"));
  } catch (error) {
    if (mine === attempt) giveUp(error instanceof CameraError ? "no camera" : "not started", error);
  } finally {
    view.start.disabled = false;
  }
}

async function showCameras(current?: string): Promise<void> {
  view.cameras(await listCameras(), current ?? view.camera.value);
}

async function openFile(file: File): Promise<void> {
  await stop();
  const mine = ++attempt;
  try {
    const method = await ready();
    if (mine !== attempt) return;
    release();
    const { video } = view;
    video.src = URL.createObjectURL(file);
    await new Promise<void>((done, failed) => {
      video.onloadeddata = () => done();
      video.onerror = () => failed(new Error(`${file.name}: this browser cannot play it. Try MP4 (H.264) or WebM, or use phase measure.`));
    });
    if (mine !== attempt) return;
    const measuring = (running = new Measurement("file", file.name, method, engine, view, chosenMethod()));
    video.onended = () => void fileEnded(measuring);
    video.onerror = () => {
      measuring.warnings.push("the video is damaged; it could not be played to its end");
      void fileEnded(measuring);
    };
    await video.play();
  } catch (error) {
    if (mine === attempt) giveUp("not opened", error);
  }
}

async function fileEnded(done: Measurement): Promise<void> {
  if (running !== done) return;
  running = null;
  done.halt();
  release();
  last = await done.end();
  view.running(null);
  view.report(last);
  const [face] = last.faces;
  const { summary } = face ?? { summary: null };
  if (summary && "bpm" in summary) view.show({ state: "steady", label: "whole video", bpm: summary.bpm, low: summary.low, high: summary.high, share: summary.pOk, guidance: "The report is below." });
  else view.show(note("none", "no reading", GUIDANCE[summary?.reason ?? "NO_FACE"], summary?.reason ?? "NO_FACE"));
}

async function stop(why = "Stopped. The numbers are kept until you close this tab."): Promise<void> {
  attempt += 1;
  const done = running;
  if (!done) return;
  running = null;
  done.halt();
  release(); // first of all: the camera's light goes out
  view.running(null);
  view.show(note("idle", "stopped", why));
  last = await done.end();
}

function giveUp(label: string, error: unknown): void {
  release();
  view.running(null);
  view.show(note("none", label, error instanceof Error ? error.message : String(error)));
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

function save(kind: "csv" | "json"): void {
  const result = running?.result ?? last;
  if (!result) return;
  const stem = `phase-live-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}`;
  if (kind === "csv") view.save(`${stem}.csv`, csvText(result), "text/csv");
  else view.save(`${stem}.json`, JSON.stringify(toDocument(result), null, 2), "application/json");
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
  void stop();
  giveUp("problem", problem);
};
engine.load().then(({ about }) => view.about(about), () => undefined);
