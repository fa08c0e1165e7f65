/** onnxruntime-web on one wasm thread, and YuNet on it. */

import * as ort from "onnxruntime-web/wasm";
import wasmUrl from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import type { DetectorNetwork } from "../face/detector";

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm: new URL(wasmUrl, self.location.href).href };
ort.env.logLevel = "error";

/** Milliseconds spent in networks since the last reading of it. */
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

export const openSession = (model: Uint8Array): Promise<ort.InferenceSession> =>
  ort.InferenceSession.create(model, { executionProviders: ["wasm"], graphOptimizationLevel: "all", enableCpuMemArena: false });

/** YuNet, run as the detector wants it. */
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
