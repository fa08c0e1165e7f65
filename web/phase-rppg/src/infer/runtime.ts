/** onnxruntime-web on one wasm thread, and the detector YuNet. */

import * as ort from "onnxruntime-web/wasm";
import type { DetectorNetwork } from "../face/detector.js";

const WASM_BYTES = 14.2e6; // approximate, for the progress

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

/** Milliseconds spent in networks since the last `take`. */
export const stopwatch = {
  ms: 0,
  async time<T>(work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.ms += performance.now() - start;
    }
  },
  take(): number {
    const { ms } = this;
    this.ms = 0;
    return ms;
  },
};

/** Load the runtime. It is fetched here, so that a missing file is named and the progress is known. */
export async function loadRuntime(url: string, progress: (share: number) => void): Promise<void> {
  const address = new URL(url);
  const name = address.pathname.split("/").slice(-2).join("/");
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok) throw new Error(`${name} is missing (${answer?.status ?? "no connection"}); the page is not complete`);
  ort.env.wasm.wasmBinary = await readAll(answer, WASM_BYTES, progress);
}

/** Read a body and report the share that has arrived; `expected` is the size without compression. */
async function readAll(answer: Response, expected: number, progress: (share: number) => void): Promise<ArrayBuffer> {
  if (!answer.body) return answer.arrayBuffer();
  const parts: Uint8Array[] = [];
  const reader = answer.body.getReader();
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    progress(Math.min(1, size / expected));
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes.buffer;
}

/** A WebAssembly module with one SIMD instruction. onnxruntime-web has no build without SIMD. */
const SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);

/** Throw an error if this browser cannot run the networks. */
export function checkSupport(): void {
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(SIMD))
    throw new Error("This browser is too old: it has no WebAssembly SIMD. Update it, or use another one.");
}

export const openSession = (model: Uint8Array): Promise<ort.InferenceSession> =>
  ort.InferenceSession.create(model, { executionProviders: ["wasm"], graphOptimizationLevel: "all", enableCpuMemArena: false });

/** The network of the face detector. */
export class YuNet implements DetectorNetwork {
  private constructor(private readonly session: ort.InferenceSession) {}

  static async open(model: Uint8Array): Promise<YuNet> {
    return new YuNet(await openSession(model));
  }

  async run(planes: Float32Array, width: number, height: number): Promise<Record<string, Float32Array>> {
    const input = new ort.Tensor("float32", planes, [1, 3, height, width]);
    const answer = await stopwatch.time(() => this.session.run({ input }));
    return Object.fromEntries(Object.entries(answer).map(([name, tensor]) => [name, tensor.data as Float32Array]));
  }
}

export { ort };
