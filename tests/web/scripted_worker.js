/*
 * A worker without networks: it answers every frame with what a test has said on the channel "script".
 *   faces: what is in view: id, box, sample, provisional    events: sent once, with the next frame
 *   visible: faces in the picture    wave: rate of the previewed waveform in bpm, 0 for noise
 */
const said = { faces: [], visible: null, wave: 72 };
let pending = [];
let focus = null;
let unanswered = []; // numbers of the sayings that no frame has carried yet

const script = new BroadcastChannel("script");
script.onmessage = ({ data }) => {
  const { events = [], id, ...rest } = data;
  pending.push(...events.map(filled));
  unanswered.push(id);
  Object.assign(said, rest);
};

/** A pulse with its dicrotic wave, or noise. */
function pulse(bpm, startS, seconds, fps = 30) {
  const count = Math.round(seconds * fps);
  const values = Float64Array.from({ length: count }, (_, i) => {
    const phase = 2 * Math.PI * (bpm / 60) * (startS + i / fps);
    return bpm > 0 ? Math.sin(phase) + 0.4 * Math.sin(2 * phase + 1.6) : Math.sin(12.9 * i * i) * Math.cos(0.7 * i);
  });
  return { values, fps, startS, valid: new Uint8Array(count).fill(1) };
}

const filled = (event) => (event.kind === "wave" ? { ...event, wave: pulse(event.bpm, 0, event.seconds) } : event);

function region({ id, box, sample, provisional }) {
  const size = 12;
  const mask = Uint8Array.from({ length: size * size }, (_, i) => {
    const [x, y] = [(i % size) / size - 0.46, Math.floor(i / size) / size - 0.46];
    return x * x / 0.1 + y * y / 0.16 < 1 ? 220 : 0;
  });
  const good = { luma: 130, facePx: 140, clipped: 0, x: 0, y: 0 };
  return { id, box, size, mask, sample: { ...good, ...sample }, ...(provisional === undefined ? {} : { provisional }) };
}

async function load(base) {
  const names = ["network", "pos"];
  const found = await Promise.all(names.map(async (name) => (await fetch(`${base}models/calibration/${name}.json`)).json()));
  self.postMessage({ kind: "ready", method: "scripted", about: "Scripted.", calibrations: Object.fromEntries(names.map((name, i) => [name, found[i]])) });
}

function frame({ picture, tS }) {
  const [width, height] = [picture.displayWidth ?? picture.width, picture.displayHeight ?? picture.height];
  picture.close?.();
  const events = pending;
  pending = [];
  const previewFace = said.faces.find(({ id }) => id === focus)?.id ?? said.faces[0]?.id ?? null;
  self.postMessage({
    kind: "frame", tS, width, height, luma: 120, events, tookMs: 5, networkMs: 2, faces: said.faces.map(region), visibleCount: said.visible ?? said.faces.length,
    preview: previewFace === null ? null : pulse(said.wave, tS, 8), previewFace,
  });
  for (const id of unanswered) script.postMessage({ sent: id });
  unanswered = [];
}

self.onmessage = ({ data }) => {
  if (data.kind === "load") void load(data.base);
  if (data.kind === "focus") focus = data.face;
  if (data.kind === "frame") frame(data);
  if (data.kind === "finish") {
    self.postMessage({ kind: "finished", events: pending, frameCount: 0, faceSeen: true });
    pending = [];
  }
};
