// The plain API: frames of any source go into a session, events come out.
import { openCamera, Pump, Session } from "phase-rppg";
import wasm from "phase-rppg/assets/ort-wasm-simd-threaded.wasm?url";
import worker from "phase-rppg/assets/worker.js?url";

const show = (id, text) => {
  document.querySelector(`#${id}`).textContent = text;
};

// Worker and runtime are files of the bundle; the folder models/ is copied from the package to public/.
const session = new Session({ assets: "./", worker, wasm });
session.on("state", ({ detail }) => show("state", detail.state));
session.on("reading", ({ detail: { reading } }) => show("reading", "bpm" in reading ? `${reading.bpm.toFixed(1)} bpm` : reading.reason));
session.on("error", ({ detail }) => show("state", detail.message));

const video = document.querySelector("#camera");
video.srcObject = await openCamera();
await video.play();
await session.ready;
new Pump(video, { live: true, accepts: () => true, take: ({ picture, tS }) => session.push(picture, tS) });
