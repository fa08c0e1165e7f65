/** Pixels out of whatever a frame came as. */

import type { RawPicture, ToWorker } from "../protocol";
import type { Picture } from "../types";

const LONGEST_PX = 1280; // larger pictures are drawn smaller: a face needs no more

/** Draws frames on one canvas that is kept, and reads them back. */
export class Grabber {
  private canvas = new OffscreenCanvas(1, 1);
  private context = this.canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;

  async pixels(picture: Extract<ToWorker, { kind: "frame" }>["picture"]): Promise<Picture> {
    if ("rgba" in picture) return picture as RawPicture;
    const [width, height] = "displayWidth" in picture ? [picture.displayWidth, picture.displayHeight] : [picture.width, picture.height];
    const scale = Math.min(1, LONGEST_PX / Math.max(width, height));
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    this.context.drawImage(picture, 0, 0, wide, high);
    picture.close();
    const { data } = this.context.getImageData(0, 0, wide, high);
    return { rgba: data, width: wide, height: high };
  }
}
