/** The worker: owns the networks and the session, takes one frame at a time. */

import { Detector } from "./face/detector";
import { ModelFiles } from "./infer/files";
import { openNetwork } from "./infer/onnx";
import { stopwatch, YuNet } from "./infer/runtime";
import { type Calibration, read } from "./session/calibration";
import { SessionConfig } from "./session/config";
import type { PulseModel } from "./session/pulseModel";
import type { FaceState } from "./session/faceState";
import { Session } from "./session/session";
import type { FromWorker, SeenFace, ToWorker } from "./protocol";
import { Grabber } from "./capture/grabber";

const PREVIEW_S = 8;
const PREVIEW_EVERY_S = 0.1;

interface Loaded {
  readonly files: ModelFiles;
  readonly detector: Detector;
  readonly model: PulseModel | null;
}

const say = (message: FromWorker): void => self.postMessage(message);
const grabber = new Grabber();
let loaded: Loaded | null = null;
let session: Session | null = null;
let previewedS = -Infinity;

async function load(base: string): Promise<void> {
  say({ kind: "loading", share: 0.05 });
  const files = await ModelFiles.open(base);
  const detector = new Detector(await YuNet.open(await files.bytes("models/face/yunet.onnx")));
  say({ kind: "loading", share: 0.6 });
  const model = await openNetwork(files);
  loaded = { files, detector, model };
  const about = model ? `${model.name}, ${model.manifest.parameters.toLocaleString("en")} parameters` : "POS (Wang et al., 2017)";
  say({ kind: "ready", method: model?.name ?? "pos", about: `Pulse by ${about}; faces by YuNet.` });
}

async function start(method?: "pos" | "chrom"): Promise<void> {
  if (!loaded) throw new Error("the networks are not loaded yet");
  const model = method ? null : loaded.model;
  const calibration = await calibrationOf(model ? "network" : (method ?? "pos"), loaded.files);
  session = new Session(new SessionConfig(calibration, { model, method, faces: "largest" }), loaded.detector);
  previewedS = -Infinity;
}

/** The gate of a method; methods without their own share that of POS, networks have one. */
async function calibrationOf(family: string, files: ModelFiles): Promise<Calibration> {
  const own = `models/calibration/${family}.json`;
  const name = files.list("models/calibration", ".json").includes(own) ? own : "models/calibration/pos.json";
  return read(await files.json(name), name);
}

async function frame({ picture, tS }: Extract<ToWorker, { kind: "frame" }>): Promise<void> {
  const begun = performance.now();
  const pixels = await grabber.pixels(picture);
  if (!session) return;
  stopwatch.take();
  const events = await session.push(pixels, tS);
  const present = session.present.filter((faceState) => faceState.announced);
  const due = tS - previewedS >= PREVIEW_EVERY_S || tS < previewedS;
  const preview = due && present.length > 0 ? present[0].preview(PREVIEW_S) : null;
  if (preview) previewedS = tS;
  say({
    kind: "frame", tS, width: pixels.width, height: pixels.height, faces: present.map(seen), events, preview,
    tookMs: performance.now() - begun, networkMs: stopwatch.take(),
  });
}

function seen(faceState: FaceState): SeenFace {
  const { side, weights } = faceState.attention;
  const low = weights.reduce((lowest, weight) => Math.min(lowest, weight), Infinity);
  const span = Math.max(weights.reduce((highest, weight) => Math.max(highest, weight), 0) - low, 1e-9);
  return { id: faceState.track.id, box: faceState.sampler.box, size: side, mask: Uint8Array.from(weights, (w) => (255 * (w - low)) / span) };
}

async function finish(): Promise<void> {
  if (!session) return;
  const events = await session.finish();
  say({ kind: "finished", events, frameCount: session.frameCount, faceSeen: session.faceSeen });
  session = null;
}

async function handle(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "load": return load(message.base);
    case "start": return start(message.method);
    case "frame": return frame(message);
    case "finish": return finish();
  }
}

let queue: Promise<void> = Promise.resolve(); // messages are handled one after the other
self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  queue = queue.then(() => handle(data)).catch((error: unknown) => {
    say({ kind: "failed", problem: error instanceof Error ? error.message : String(error) });
  });
};
