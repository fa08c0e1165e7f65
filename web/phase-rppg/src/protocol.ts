/** Messages between the page and its worker. */

import type { Calibration } from "./session/calibration.js";
import type { Event } from "./session/results.js";
import type { Box, Reading, Waveform } from "./types.js";

/** Raw pixels (H,W,4) u8, for browsers without transferable frames and for tests. */
export interface RawPicture {
  readonly rgba: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

export type ToWorker =
  | { readonly kind: "load"; readonly base: string; readonly wasm: string } // folder of `models/`, file of the runtime
  | {
      readonly kind: "start";
      readonly method?: "pos" | "chrom"; // default: the network
      readonly file?: boolean; // default: a camera
      readonly everyone?: boolean; // of a camera; default: the largest face
      readonly firstFace?: number; // id of the first face
    }
  | { readonly kind: "focus"; readonly face: number } // whose waveform is previewed
  | { readonly kind: "frame"; readonly picture: ImageBitmap | VideoFrame | RawPicture; readonly tS: number }
  | { readonly kind: "finish" };

/** What a frame shows of a face, for advice to the person in front of the camera. */
export interface FaceSample {
  readonly luma: number; // 0–255, of the skin
  readonly facePx: number;
  readonly clipped: number; // 0–1, overexposed share of the skin
  readonly x: number; // position in face widths
  readonly y: number;
}

/** One face in the processed frame. */
export interface FaceRegion {
  readonly id: number;
  readonly box: Box; // the measured square, in pixels of the frame
  readonly size: number;
  readonly mask: Uint8Array; // (S,S) 0–255, weight of each cell
  readonly sample: FaceSample; // of this frame
  readonly provisional?: Reading | null; // before the first complete window, once per second; absent: not computed
}

export type FromWorker =
  | { readonly kind: "loading"; readonly share: number } // 0–1
  | { readonly kind: "ready"; readonly method: string; readonly about: string; readonly calibrations: Readonly<Record<string, Calibration>> }
  | { readonly kind: "failed"; readonly problem: string }
  | {
      readonly kind: "frame"; // a frame is processed
      readonly tS: number;
      readonly width: number;
      readonly height: number;
      readonly luma: number; // 0–255, of the whole picture
      readonly faces: readonly FaceRegion[];
      readonly events: readonly Event[];
      readonly visibleCount: number; // faces in the picture, measured or not
      readonly preview: Waveform | null; // of the face in focus or else the first one, a few times per second
      readonly previewFace: number | null;
      readonly tookMs: number;
      readonly networkMs: number; // part of it in the networks
    }
  | { readonly kind: "finished"; readonly events: readonly Event[]; readonly frameCount: number; readonly faceSeen: boolean };
