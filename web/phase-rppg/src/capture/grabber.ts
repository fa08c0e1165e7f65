/** Read the pixels of a frame. */

import type { RawPicture, ToWorker } from "../protocol.js";
import type { Picture } from "../types.js";

const LONGEST_PX = 1920; // larger frames are scaled down; a face needs no more pixels
const LUMA_POINTS = 32; // in each direction

/** Orientation of a frame; older browsers do not provide it. */
type Orientation = { readonly rotation?: number; readonly flip?: boolean };

/** Draws pictures on a canvas and reads their pixels. Works in the page and, with OffscreenCanvas, in a worker. */
export class PixelReader {
  private readonly canvas = typeof OffscreenCanvas === "undefined" ? document.createElement("canvas") : new OffscreenCanvas(1, 1);
  private readonly context = this.canvas.getContext("2d", { willReadFrequently: true, alpha: false }) as CanvasRenderingContext2D;

  read(picture: CanvasImageSource, width: number, height: number): Picture {
    const scale = Math.min(1, LONGEST_PX / Math.max(width, height));
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    this.context.drawImage(picture, 0, 0, wide, high);
    return { rgba: this.context.getImageData(0, 0, wide, high).data, width: wide, height: high };
  }
}

/** Returns the pixels of frames and closes them. A result is valid until the next call. */
export class Grabber {
  private bytes = new Uint8Array(0);
  private reader: PixelReader | null = null;

  async pixels(picture: Extract<ToWorker, { kind: "frame" }>["picture"]): Promise<Picture> {
    if ("rgba" in picture) return picture as RawPicture;
    try {
      return ("copyTo" in picture && (await this.copyPixels(picture))) || this.drawPixels(picture);
    } finally {
      picture.close();
    }
  }

  /** Copy the pixels from the frame, or return null if a canvas is needed. Drawing takes three times as long
   *  and fills the image cache of the browser, up to half a gigabyte. */
  private async copyPixels(frame: VideoFrame & Orientation): Promise<Picture | null> {
    const { displayWidth: width, displayHeight: height, visibleRect, rotation, flip } = frame;
    const isUpright = rotation === 0 && !flip && visibleRect?.width === width && visibleRect.height === height;
    if (!isUpright || Math.max(width, height) > LONGEST_PX) return null;
    const size = width * height * 4;
    try {
      if (frame.allocationSize({ format: "RGBA" }) !== size) return null; // this browser does not convert to RGBA
      if (this.bytes.length !== size) this.bytes = new Uint8Array(size);
      await frame.copyTo(this.bytes, { format: "RGBA" });
    } catch {
      return null; // the pixels are not accessible without a canvas
    }
    return { rgba: this.bytes, width, height };
  }

  private drawPixels(picture: VideoFrame | ImageBitmap): Picture {
    const [width, height] = "displayWidth" in picture ? [picture.displayWidth, picture.displayHeight] : [picture.width, picture.height];
    this.reader ??= new PixelReader();
    return this.reader.read(picture, width, height);
  }
}

/** Return the mean brightness of a picture, 0–255, from points of a grid. The page must not draw the video on a
 *  canvas for this: the image cache of Chromium keeps every frame that is drawn. */
export function meanLuma({ rgba, width, height }: Picture): number {
  let total = 0;
  for (let row = 0; row < LUMA_POINTS; row++)
    for (let column = 0; column < LUMA_POINTS; column++) {
      const [x, y] = [Math.floor(((column + 0.5) * width) / LUMA_POINTS), Math.floor(((row + 0.5) * height) / LUMA_POINTS)];
      const at = 4 * (y * width + x);
      total += 0.299 * rgba[at] + 0.587 * rgba[at + 1] + 0.114 * rgba[at + 2];
    }
  return total / LUMA_POINTS ** 2;
}
