/** What the page and its worker say to each other. */

import type { Event } from "./session/results";
import type { Box, Waveform } from "./types";

/** Raw pixels, for browsers without transferable frames and for tests; (H,W,4) u8. */
export interface RawPicture {
  readonly rgba: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

export type ToWorker =
  | { readonly kind: "load"; readonly base: string } // address of the page's folder
  | { readonly kind: "start"; readonly method?: "pos" | "chrom" } // without a method: the network
  | { readonly kind: "frame"; readonly picture: ImageBitmap | VideoFrame | RawPicture; readonly tS: number }
  | { readonly kind: "finish" };

/** One face as it was in the frame that was just processed. */
export interface SeenFace {
  readonly id: number;
  readonly box: Box; // the square that is measured, in pixels of the frame
  readonly size: number;
  readonly mask: Uint8Array; // (S,S) 0–255, how much each cell counts as skin
}

export type FromWorker =
  | { readonly kind: "loading"; readonly share: number } // 0–1
  | { readonly kind: "ready"; readonly method: string; readonly about: string }
  | { readonly kind: "failed"; readonly problem: string }
  | {
      readonly kind: "frame"; // a frame is done, the next may come
      readonly tS: number;
      readonly width: number;
      readonly height: number;
      readonly faces: readonly SeenFace[];
      readonly events: readonly Event[];
      readonly preview: Waveform | null; // of the first face, a few times per second
      readonly tookMs: number;
      readonly networkMs: number; // of which in the networks
    }
  | { readonly kind: "finished"; readonly events: readonly Event[]; readonly frameCount: number; readonly faceSeen: boolean };
