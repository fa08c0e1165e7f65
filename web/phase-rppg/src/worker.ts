/** The worker: owns the networks and the session and processes one frame at a time. */

import { Detector } from "./face/detector.js";
import { ModelFiles } from "./infer/files.js";
import { openNetwork } from "./infer/onnx.js";
import { checkSupport, loadRuntime, stopwatch, YuNet } from "./infer/runtime.js";
import { type Calibration, calibrationOf, read } from "./session/calibration.js";
import { type Choices, CONTEXT_S, SessionConfig } from "./session/config.js";
import type { PulseModel } from "./session/pulseModel.js";
import type { FacePipeline } from "./session/facePipeline.js";
import { Session } from "./session/session.js";
import type { Reading } from "./types.js";
import type { FromWorker, FaceRegion, ToWorker } from "./protocol.js";
import { Grabber, meanLuma } from "./capture/grabber.js";

const CALIBRATIONS = "models/calibration";
const PREVIEW_S = 8;
const PREVIEW_EVERY_MS = 100; // of the computer: a file is decoded faster than it would play
const PROVISIONAL_EVERY_S = 1;

interface Loaded {
  readonly files: ModelFiles;
  readonly detector: Detector;
  readonly model: PulseModel | null;
  readonly calibrations: Readonly<Record<string, Calibration>>; // by family
}

const post = (message: FromWorker): void => self.postMessage(message);
const grabber = new Grabber();
let loaded: Loaded | null = null;
let session: Session | null = null;
let isFile = false; // of the session
let previewedMs = -Infinity;
let provisionalS = -Infinity;
let focus: number | null = null; // whose waveform is previewed

async function load({ base, wasm }: Extract<ToWorker, { kind: "load" }>): Promise<void> {
  post({ kind: "loading", share: 0.05 });
  checkSupport();
  const files = await ModelFiles.open(base);
  await loadRuntime(wasm, (share) => post({ kind: "loading", share: 0.05 + 0.75 * share }));
  const detector = new Detector(await YuNet.open(await files.bytes("models/face/yunet.onnx")));
  post({ kind: "loading", share: 0.9 });
  const model = await openNetwork(files);
  const calibrations = await loadCalibrations(files);
  loaded = { files, detector, model, calibrations };
  const about = model ? `${model.name}, ${model.manifest.parameters.toLocaleString("en")} parameters` : "POS (Wang et al., 2017)";
  post({ kind: "ready", method: model?.name ?? "pos", about: `Pulse by ${about}; faces by YuNet.`, calibrations });
}

async function start({ method, file, everyone, firstFace }: Extract<ToWorker, { kind: "start" }>): Promise<void> {
  if (!loaded) throw new Error("the networks are not loaded");
  const model = method ? null : loaded.model;
  const { calibrations, detector } = loaded;
  const calibration = calibrationOf(model ? "network" : (method ?? "pos"), calibrations);
  const choices: Choices = file ? { model, method, faces: "all", contextS: CONTEXT_S } : { model, method, faces: everyone ? "all" : "largest" };
  session = new Session(new SessionConfig(calibration, choices), detector, firstFace);
  isFile = file ?? false;
  previewedMs = provisionalS = -Infinity;
  focus = null;
}

async function loadCalibrations(files: ModelFiles): Promise<Record<string, Calibration>> {
  const names = files.list(CALIBRATIONS, ".json");
  const found = await Promise.all(names.map(async (name) => [name.slice(CALIBRATIONS.length + 1, -".json".length), read(await files.json(name), name)]));
  return Object.fromEntries(found) as Record<string, Calibration>;
}

async function frame({ picture, tS }: Extract<ToWorker, { kind: "frame" }>): Promise<void> {
  const startedMs = performance.now();
  const pixels = await grabber.pixels(picture);
  if (!session) return;
  stopwatch.take();
  const events = await session.push(pixels, tS);
  const present = session.present.filter((face) => face.announced);
  const due = startedMs - previewedMs >= PREVIEW_EVERY_MS;
  const shown = present.find((face) => face.track.id === focus) ?? present[0];
  const preview = due && shown ? shown.preview(PREVIEW_S) : null;
  if (preview) previewedMs = startedMs;
  const early = isFile ? new Map<number, null>() : await provisional(present, tS);
  post({
    kind: "frame", tS, width: pixels.width, height: pixels.height, luma: meanLuma(pixels), faces: present.map((face) => faceRegion(face, early)), events,
    visibleCount: session.visibleCount, preview, previewFace: preview && shown.track.id,
    tookMs: performance.now() - startedMs, networkMs: stopwatch.take(),
  });
}

/** Return readings of faces whose first window is not complete, once per second. */
async function provisional(present: readonly FacePipeline[], tS: number): Promise<ReadonlyMap<number, Reading | null>> {
  const found = new Map<number, Reading | null>();
  if (tS - provisionalS < PROVISIONAL_EVERY_S && tS >= provisionalS) return found;
  provisionalS = tS;
  for (const face of present) found.set(face.track.id, await face.provisionalReading());
  return found;
}

function faceRegion(face: FacePipeline, early: ReadonlyMap<number, Reading | null>): FaceRegion {
  const { side, weights } = face.attention;
  const low = weights.reduce((lowest, weight) => Math.min(lowest, weight), Infinity);
  const span = Math.max(weights.reduce((highest, weight) => Math.max(highest, weight), 0) - low, 1e-9);
  const { id } = face.track;
  return {
    id, box: face.sampler.box, size: side, mask: Uint8Array.from(weights, (w) => (255 * (w - low)) / span), sample: face.sampler.last,
    ...(early.has(id) ? { provisional: early.get(id) } : {}),
  };
}

async function finish(): Promise<void> {
  if (!session) return;
  const events = await session.finish();
  post({ kind: "finished", events, frameCount: session.frameCount, faceSeen: session.faceSeen });
  session = null;
}

async function handle(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "load": return load(message);
    case "start": return start(message);
    case "focus":
      focus = message.face;
      return;
    case "frame": return frame(message);
    case "finish": return finish();
  }
}

let queue: Promise<void> = Promise.resolve(); // messages are handled in order
self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  queue = queue.then(() => handle(data)).catch((error: unknown) => {
    post({ kind: "failed", problem: error instanceof Error ? error.message : String(error) });
  });
};
