/** Frame-by-frame inference with an exported network; a port of infer/onnx.py. */

import type { PulseModel } from "../session/pulseModel.js";
import { type ModelFiles, verify } from "./files.js";
import { INPUT, type Manifest, MASK, NEXT, readManifest, WAVE } from "./manifest.js";
import { openSession, ort, stopwatch } from "./runtime.js";

export const DEFAULT = "phasenet-stream";
const FOLDER = "models/infer";

/** Open the bundled network, or return null if there is none. */
export async function openNetwork(files: ModelFiles): Promise<StepModel | null> {
  const manifests = files.list(FOLDER, ".json");
  const name = manifests.find((address) => address === `${FOLDER}/${DEFAULT}.json`) ?? manifests[0];
  if (name === undefined) return null;
  const manifest = readManifest(await files.json(name), name);
  const address = `${FOLDER}/${manifest.file}`;
  const graph = await files.bytes(address);
  await verify(address, graph, manifest.sha256); // the manifest states the hash, too
  const session = await openSession(graph);
  const wanted = [INPUT, ...Object.keys(manifest.states)].sort();
  if ([...session.inputNames].sort().join() !== wanted.join()) throw new Error(`${address}: its inputs are not those of its manifest`);
  return new StepModel(manifest, session);
}

/** A network with its state for one face. */
export class StepModel implements PulseModel {
  readonly name: string;
  readonly fps: number;
  readonly size: number;
  readonly delayFrames: number;
  /** Attention mask (side,side) of the last frame, or null before the first. */
  attention: { readonly side: number; readonly weights: Float32Array } | null = null;
  private state: Record<string, ort.Tensor>;

  constructor(readonly manifest: Manifest, private readonly session: ort.InferenceSession) {
    this.name = manifest.name;
    this.fps = manifest.fps;
    this.size = manifest.size;
    this.delayFrames = manifest.delay_frames;
    this.state = Object.fromEntries(Object.entries(manifest.states).map(([name, shape]) => {
      const count = shape.reduce((product, side) => product * side, 1);
      return [name, new ort.Tensor("float32", new Float32Array(count), shape)];
    }));
  }

  fresh(): StepModel {
    return new StepModel(this.manifest, this.session);
  }

  async step(crops: readonly Uint8Array[]): Promise<Float32Array> {
    const { size } = this;
    const pixels = new Uint8Array(crops.length * size * size * 3);
    crops.forEach((crop, t) => pixels.set(crop, t * size * size * 3));
    const input = new ort.Tensor("uint8", pixels, [crops.length, size, size, 3]);
    const answer = await stopwatch.time(() => this.session.run({ [INPUT]: input, ...this.state }));
    this.state = Object.fromEntries(Object.keys(this.state).map((name) => [name, answer[NEXT + name]]));
    this.recordAttention(answer[MASK].data as Float32Array);
    return answer[WAVE].data as Float32Array;
  }

  /** Keep the sum of the masks of the last frame. */
  private recordAttention(masks: Float32Array): void {
    const [count, side] = this.manifest.mask;
    const cells = side * side;
    const newest = masks.subarray(masks.length - count * cells);
    const weights = new Float32Array(cells);
    newest.forEach((weight, i) => (weights[i % cells] += weight));
    this.attention = { side, weights };
  }
}
