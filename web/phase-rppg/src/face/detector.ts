/** Face detection with YuNet; a port of face/detector.py. The caller provides the network. */

import { reference } from "../data.js";
import { rint } from "../signal/arrays.js";
import type { Box, Picture, Point } from "../types.js";

export const STRIDES = reference.detector.STRIDES;
export const MIN_SCORE = reference.detector.MIN_SCORE;
const MAX_OVERLAP = reference.detector.MAX_OVERLAP; // boxes with a larger intersection over union are one face
export const LONG_SIDE_PX = reference.detector.LONG_SIDE_PX; // long side of the detector's input
export const SEARCH_SIDES_PX = reference.detector.SEARCH_SIDES_PX; // for small faces in large pictures

/** A face in one picture, in pixels of that picture. */
export interface Detection {
  readonly box: Box;
  readonly score: number; // 0–1
  readonly landmarks: readonly Point[]; // right eye, left eye, nose tip, right and left mouth corner
}

/** Takes planes (1,3,H,W) in BGR order and returns the outputs by name. */
export interface DetectorNetwork {
  run(planes: Float32Array, width: number, height: number): Promise<Record<string, Float32Array>>;
}

export class Detector {
  constructor(private readonly network: DetectorNetwork, private readonly minScore = MIN_SCORE) {}

  /** Return the faces in a picture, highest score first. The picture is scaled down before. */
  async detect(picture: Picture, longSidePx: number = LONG_SIDE_PX): Promise<Detection[]> {
    const step = stepFor(picture, longSidePx);
    const { planes, width, height } = networkInput(decimate(picture, step));
    const answer = await this.network.run(planes, width, height);
    const found = STRIDES.flatMap((stride) => decode(answer, stride, width / stride, this.minScore, step));
    return nonMaximumSuppression(found);
  }

  /** Increase the resolution until a face is found, for small faces in large pictures. */
  async search(picture: Picture): Promise<Detection[]> {
    let found: Detection[] = [];
    const triedSteps = new Set<number>();
    for (const side of SEARCH_SIDES_PX) {
      const step = stepFor(picture, side);
      if (!triedSteps.has(step) && found.length === 0) found = await this.detect(picture, side);
      triedSteps.add(step);
    }
    return found;
  }
}

const stepFor = (picture: Picture, side: number): number =>
  Math.max(1, rint(Math.max(picture.width, picture.height) / side));

/** Reduce the picture to 1/step of its size; each pixel is the mean of up to four spaced pixels. */
export function decimate(picture: Picture, step: number): Picture {
  if (step === 1) return picture;
  const width = Math.floor(picture.width / step);
  const height = Math.floor(picture.height / step);
  const near = step >> 2;
  const far = step - 1 - (step >> 2);
  const rgba = new Uint8Array(width * height * 4);
  const source = picture.rgba;
  for (let y = 0; y < height; y++) {
    const upper = (y * step + near) * picture.width;
    const lower = (y * step + far) * picture.width;
    for (let x = 0; x < width; x++) {
      const left = x * step + near;
      const right = x * step + far;
      for (let c = 0; c < 3; c++) {
        const onLeft = (source[(upper + left) * 4 + c] + source[(lower + left) * 4 + c]) >> 1;
        const onRight = (source[(upper + right) * 4 + c] + source[(lower + right) * 4 + c]) >> 1;
        rgba[(y * width + x) * 4 + c] = (onLeft + onRight) >> 1;
      }
    }
  }
  return { rgba, width, height };
}

/** (h,w,4) RGBA → (1,3,H,W) BGR with sides padded to multiples of 32. */
export function networkInput(picture: Picture): { planes: Float32Array; width: number; height: number } {
  const width = Math.ceil(picture.width / 32) * 32;
  const height = Math.ceil(picture.height / 32) * 32;
  const planes = new Float32Array(3 * width * height);
  for (let c = 0; c < 3; c++) {
    for (let y = 0; y < picture.height; y++) {
      let from = y * picture.width * 4 + 2 - c;
      let to = (c * height + y) * width;
      for (let x = 0; x < picture.width; x++, from += 4) planes[to++] = picture.rgba[from];
    }
  }
  return { planes, width, height };
}

/** Decode one stride of the anchor-free output. */
export function decode(
  answer: Record<string, Float32Array>, stride: number, columns: number, minScore: number, scale: number,
): Detection[] {
  const [cls, obj, boxes, points] = ["cls", "obj", "bbox", "kps"].map((kind) => answer[`${kind}_${stride}`]);
  const unit = (value: number): number => Math.min(Math.max(value, 0), 1);
  const found: Detection[] = [];
  for (let cell = 0; cell < cls.length; cell++) {
    const score = Math.sqrt(unit(cls[cell]) * unit(obj[cell]));
    if (score < minScore) continue;
    const column = cell % columns;
    const row = Math.floor(cell / columns);
    const place = (x: number, y: number): Point => [(x + column) * stride * scale, (y + row) * stride * scale];
    const [centreX, centreY] = place(boxes[cell * 4], boxes[cell * 4 + 1]);
    const width = Math.exp(Math.min(boxes[cell * 4 + 2], 10)) * stride * scale;
    const height = Math.exp(Math.min(boxes[cell * 4 + 3], 10)) * stride * scale;
    const landmarks = [0, 1, 2, 3, 4].map((k) => place(points[cell * 10 + 2 * k], points[cell * 10 + 2 * k + 1]));
    found.push({ box: [centreX - width / 2, centreY - height / 2, width, height], score, landmarks });
  }
  return found;
}

/** Non-maximum suppression: keep the best of overlapping boxes. */
export function nonMaximumSuppression(found: readonly Detection[]): Detection[] {
  const kept: Detection[] = [];
  for (const one of [...found].sort((a, b) => b.score - a.score))
    if (kept.every((other) => overlap(one.box, other.box) <= MAX_OVERLAP)) kept.push(one);
  return kept;
}

/** Intersection over union of two boxes, 0–1. */
export function overlap(a: Box, b: Box): number {
  const width = Math.min(a[0] + a[2], b[0] + b[2]) - Math.max(a[0], b[0]);
  const height = Math.min(a[1] + a[3], b[1] + b[3]) - Math.max(a[1], b[1]);
  const shared = Math.max(width, 0) * Math.max(height, 0);
  return shared / (a[2] * a[3] + b[2] * b[3] - shared);
}
