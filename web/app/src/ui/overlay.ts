/** Drawing over the video: corners around each face, its number, and the mask. */

import type { FaceRegion } from "phase-rppg";

/** What is written at the box of a face. */
export interface Tag {
  readonly colour: string;
  readonly text: string;
  readonly main: boolean; // the face that is shown large
}

export class Overlay {
  private readonly context: CanvasRenderingContext2D;
  private readonly maskCanvas = document.createElement("canvas");

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  /** Draw over a video of this size; CSS scales canvas and video alike. `mirrored`: CSS flips both. */
  draw(width: number, height: number, faces: readonly FaceRegion[], withMask: boolean, mirrored: boolean, tag: (face: number) => Tag): void {
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    this.clear();
    for (const face of faces) {
      const { colour, text, main } = tag(face.id);
      if (withMask && main) this.mask(face);
      this.corners(face, colour, Math.max(2, width / (main ? 200 : 320)));
      if (text) this.label(face, text, colour, mirrored);
    }
  }

  clear(): void {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  private corners({ box: [x, y, width, height] }: FaceRegion, colour: string, line: number): void {
    const { context } = this;
    const arm = width * 0.16;
    context.strokeStyle = colour;
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

  /** Write the number under the box, or within it at the edge of the picture; CSS must not turn it around. */
  private label({ box: [x, y, width, height] }: FaceRegion, text: string, colour: string, mirrored: boolean): void {
    const { context, canvas } = this;
    const size = Math.max(12, Math.round(canvas.width / 32));
    context.save();
    context.font = `600 ${size}px system-ui, sans-serif`;
    const wide = context.measureText(text).width + size;
    const middle = Math.min(Math.max(x + width / 2, wide / 2), canvas.width - wide / 2);
    const top = Math.min(y + height + size * 0.3, canvas.height - 1.6 * size);
    context.translate(middle, top);
    if (mirrored) context.scale(-1, 1);
    context.fillStyle = "rgb(0 0 0 / 68%)";
    context.beginPath();
    context.roundRect(-wide / 2, 0, wide, 1.45 * size, size * 0.7);
    context.fill();
    context.fillStyle = colour;
    context.textAlign = "center";
    context.fillText(text, 0, size * 1.08);
    context.restore();
  }

  private mask({ box: [x, y, width, height], size, mask }: FaceRegion): void {
    if (this.maskCanvas.width !== size) this.maskCanvas.width = this.maskCanvas.height = size;
    const pixels = new ImageData(size, size);
    mask.forEach((weight, i) => pixels.data.set([63, 214, 154, weight * 0.55], 4 * i));
    this.maskCanvas.getContext("2d")!.putImageData(pixels, 0, 0);
    this.context.imageSmoothingEnabled = true;
    this.context.drawImage(this.maskCanvas, x, y, width, height);
  }
}
