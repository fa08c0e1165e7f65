/** Pixels out of whatever a frame came as. */

import type { RawPicture, ToWorker } from "../protocol";
import type { Picture } from "../types";

const LONGEST_PX = 1280; // larger pictures are drawn smaller: a face needs no more

/** A frame that was filmed with the camera turned says so; older browsers know no such word. */
type Turned = { readonly rotation?: number; readonly flip?: boolean };

/** Gives the pixels of frames and closes them; a picture is good until the next one is asked for. */
export class Grabber {
  private bytes = new Uint8Array(0);
  private canvas = new OffscreenCanvas(1, 1);
  private context = this.canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;

  async pixels(picture: Extract<ToWorker, { kind: "frame" }>["picture"]): Promise<Picture> {
    if ("rgba" in picture) return picture as RawPicture;
    try {
      return ("copyTo" in picture && (await this.copied(picture))) || this.drawn(picture);
    } finally {
      picture.close();
    }
  }

  /** Straight from the frame, or null where only a canvas will do. Drawing would leave each picture in the
   *  browser's cache of images, up to half a gigabyte, and takes three times as long. */
  private async copied(frame: VideoFrame & Turned): Promise<Picture | null> {
    const { displayWidth: width, displayHeight: height, visibleRect, rotation, flip } = frame;
    const asShown = rotation === 0 && !flip && visibleRect?.width === width && visibleRect.height === height;
    if (!asShown || Math.max(width, height) > LONGEST_PX) return null;
    const size = width * height * 4;
    try {
      if (frame.allocationSize({ format: "RGBA" }) !== size) return null; // this browser does not convert
      if (this.bytes.length !== size) this.bytes = new Uint8Array(size);
      await frame.copyTo(this.bytes, { format: "RGBA" });
    } catch {
      return null; // the pixels lie where only a canvas reaches them
    }
    return { rgba: this.bytes, width, height };
  }

  private drawn(picture: VideoFrame | ImageBitmap): Picture {
    const [width, height] = "displayWidth" in picture ? [picture.displayWidth, picture.displayHeight] : [picture.width, picture.height];
    const scale = Math.min(1, LONGEST_PX / Math.max(width, height));
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    this.context.drawImage(picture, 0, 0, wide, high);
    const { data } = this.context.getImageData(0, 0, wide, high);
    return { rgba: data, width: wide, height: high };
  }
}
