/** Skin weights of a face crop, and background points of a picture; a port of face/skin_mask.py. */

import { reference } from "../data.js";
import { clip, sum } from "../signal/arrays.js";
import type { Box, Picture, Point } from "../types.js";

const CHROMA_SPREAD = reference.skin_mask.CHROMA_SPREAD; // limits of the spread of the r, g fractions
const GRID_PX = reference.skin_mask.GRID_PX; // background points along the longer side of the picture
const CLEARANCE = reference.skin_mask.CLEARANCE; // no background points within this many box sizes of a face

/** Return skin weights (S,S) with sum 1 for a `picture` (S,S,3) of the box `crop`. */
export function skinWeights(
  picture: Float32Array, size: number, crop: Box, landmarks: readonly Point[], face: Box,
): Float32Array {
  const cells = size * size;
  const shape = new Float64Array(cells);
  let seed = new Float64Array(cells);
  for (let i = 0; i < cells; i++) {
    const x = crop[0] + (((i % size) + 0.5) / size) * crop[2]; // in pixels of the frame
    const y = crop[1] + ((Math.floor(i / size) + 0.5) / size) * crop[3];
    shape[i] = faceShape(x, y, landmarks, face);
    seed[i] = shape[i] * cheeks(x, y, landmarks, face);
  }
  const seedTotal = sum(seed);
  const shapeTotal = sum(shape);
  seed = seedTotal > 0 ? seed.map((s) => s / seedTotal) : shape.map((s) => s / shapeTotal);
  const total = new Float64Array(cells);
  let meanR = 0;
  let meanG = 0;
  let level = 0;
  for (let i = 0; i < cells; i++) {
    total[i] = picture[3 * i] + picture[3 * i + 1] + picture[3 * i + 2] + 1;
    meanR += (seed[i] * picture[3 * i]) / total[i];
    meanG += (seed[i] * picture[3 * i + 1]) / total[i];
    level += seed[i] * total[i];
  }
  const squared = total.map((t, i) => (picture[3 * i] / t - meanR) ** 2 + (picture[3 * i + 1] / t - meanG) ** 2);
  let variance = 0;
  for (let i = 0; i < cells; i++) variance += seed[i] * squared[i];
  const spread = clip(2 * Math.sqrt(variance), CHROMA_SPREAD[0], CHROMA_SPREAD[1]);
  let weights = shape.map((s, i) => {
    const bright = total[i] / level;
    const lit = clip((bright - 0.3) / 0.2, 0, 1) * clip((2.1 - bright) / 0.2, 0, 1); // excludes hair and specular highlights
    return s * Math.exp(-squared[i] / (2 * spread ** 2)) * lit;
  });
  if (sum(weights) < 0.05 * shapeTotal) weights = shape; // colour is not usable: take the whole face shape
  const weightTotal = sum(weights);
  return Float32Array.from(weights, (w) => w / weightTotal);
}

/** Return the points of a coarse grid away from all faces, as byte offsets into the picture. */
export function backgroundPoints(width: number, height: number, faces: readonly Box[]): Int32Array {
  const step = Math.max(1, Math.floor(Math.max(width, height) / GRID_PX));
  const points: number[] = [];
  for (let py = step >> 1; py < height; py += step) {
    for (let px = step >> 1; px < width; px += step) {
      const x = px + 0.5;
      const y = py + 0.5;
      const near = faces.some(([left, top, faceWidth, faceHeight]) => {
        const dx = Math.abs(x - (left + faceWidth / 2));
        const middle = top + faceHeight / 2;
        const around = dx < (faceWidth / 2) * CLEARANCE && Math.abs(y - middle) < (faceHeight / 2) * CLEARANCE;
        return around || (y > middle && dx < faceWidth); // neck and chest show skin and breathing motion
      });
      if (!near) points.push((py * width + px) * 4);
    }
  }
  return Int32Array.from(points);
}

/** Return the mean colour of the background points. */
export function backgroundMean(picture: Picture, points: Int32Array): [number, number, number] {
  const mean: [number, number, number] = [0, 0, 0];
  for (const at of points) for (let c = 0; c < 3; c++) mean[c] += picture.rgba[at + c];
  return mean.map((value) => value / points.length) as [number, number, number];
}

/** Ellipse in the face box without eyes, brows and mouth, with soft edges. */
function faceShape(x: number, y: number, landmarks: readonly Point[], face: Box): number {
  const [left, top, width, height] = face;
  const [rightEye, leftEye, , rightMouth, leftMouth] = landmarks;
  const between = Math.max(Math.hypot(leftEye[0] - rightEye[0], leftEye[1] - rightEye[1]), 0.25 * width);
  const outside = (at: Point, across: number, down: number): number =>
    1 - inside(Math.hypot((x - at[0]) / (across * between), (y - at[1]) / (down * between)));
  const mouth: Point = [(rightMouth[0] + leftMouth[0]) / 2, (rightMouth[1] + leftMouth[1]) / 2];
  const oval = Math.hypot((x - left - width / 2) / (0.48 * width), (y - top - height / 2) / (0.5 * height));
  return inside(oval) * outside(rightEye, 0.38, 0.26) * outside(leftEye, 0.38, 0.26) * outside(mouth, 0.55, 0.26);
}

/** Regions that are almost always skin: cheeks and the bridge of the nose. */
function cheeks(x: number, y: number, landmarks: readonly Point[], face: Box): number {
  const [rightEye, leftEye, nose, rightMouth, leftMouth] = landmarks;
  const reach = 0.16 * face[2];
  const blend = (a: Point, b: Point, share: number): Point => [a[0] * (1 - share) + b[0] * share, a[1] * (1 - share) + b[1] * share];
  const places = [blend(rightEye, rightMouth, 0.6), blend(leftEye, leftMouth, 0.6), blend(nose, blend(rightEye, leftEye, 0.5), 0.5)];
  return Math.max(...places.map((place) => inside(Math.hypot(x - place[0], y - place[1]) / reach)));
}

/** 1 inside radius 1, 0 outside, with a linear edge. */
const inside = (radius: number): number => clip((1.1 - radius) / 0.2, 0, 1);
