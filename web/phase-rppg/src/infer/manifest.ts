/** The manifest of an exported network; a port of infer/manifest.py. */

const FORMAT = 1;
export const INPUT = "pixels"; // names in the graph
export const WAVE = "wave";
export const MASK = "mask";
export const NEXT = "next.";

/** Inputs, outputs and states of a step graph; all states start as zeros. */
export interface Manifest {
  readonly format: number;
  readonly name: string;
  readonly file: string; // the ONNX file, in the same folder
  readonly sha256: string;
  readonly fps: number;
  readonly size: number; // side of the crops in pixels
  readonly delay_frames: number; // output t is the waveform at frame t − delay
  readonly states: Readonly<Record<string, readonly number[]>>; // shapes, batch size 1
  readonly mask: readonly [number, number, number]; // masks, height, width
  readonly parameters: number;
  readonly citation: string;
}

/** Read and check a manifest. */
export function readManifest(data: unknown, where: string): Manifest {
  const found = data as Manifest;
  if (found?.format !== FORMAT) throw new Error(`${where}: not a manifest of format ${FORMAT}`);
  const counts = [found.size, found.parameters, ...(found.mask ?? [NaN]), ...Object.values(found.states ?? { missing: [NaN] }).flat()];
  const whole = counts.every((value) => Number.isInteger(value) && value > 0) && Number.isInteger(found.delay_frames);
  if (!whole || typeof found.fps !== "number" || !(found.fps > 0) || found.delay_frames < 0 || !/^[0-9a-f]{64}$/.test(found.sha256))
    throw new Error(`${where}: a field is missing or has the wrong type`);
  if (typeof found.file !== "string" || !/^[\w.-]+\.onnx$/.test(found.file)) throw new Error(`${where}: the file is not in the folder of the manifest`);
  return found;
}
