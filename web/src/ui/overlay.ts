/** The frame around the face, and the skin that is measured. */

import type { SeenFace } from "../protocol";

export class Overlay {
  private readonly context: CanvasRenderingContext2D;
  private readonly stamp = document.createElement("canvas");

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  /** Draw over a video of this size; the canvas is fitted to its box by CSS, as the video is. */
  draw(width: number, height: number, faces: readonly SeenFace[], withMask: boolean, tone: string): void {
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    this.clear();
    for (const face of faces) {
      if (withMask) this.mask(face);
      this.corners(face, tone, Math.max(2, width / 220));
    }
  }

  clear(): void {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  private corners({ box: [x, y, width, height] }: SeenFace, tone: string, line: number): void {
    const { context } = this;
    const arm = width * 0.16;
    context.strokeStyle = tone;
    context.lineWidth = line;
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    for (const [cx, cy, dx, dy] of [[x, y, 1, 1], [x + width, y, -1, 1], [x, y + height, 1, -1], [x + width, y + height, -1, -1]]) {
      context.moveTo(cx + dx * arm, cy);
      context.lineTo(cx, cy);
      context.lineTo(cx, cy + dy * arm);
    }
    context.stroke();
  }

  private mask({ box: [x, y, width, height], size, mask }: SeenFace): void {
    if (this.stamp.width !== size) this.stamp.width = this.stamp.height = size;
    const pixels = new ImageData(size, size);
    mask.forEach((weight, i) => pixels.data.set([63, 214, 154, weight * 0.62], 4 * i));
    this.stamp.getContext("2d")!.putImageData(pixels, 0, 0);
    this.context.imageSmoothingEnabled = true;
    this.context.drawImage(this.stamp, x, y, width, height);
  }
}
