import { describe, expect, it } from "vitest";
import { meanLuma } from "../src/capture/grabber.js";

const picture = (width: number, height: number, colour: (x: number, y: number) => readonly [number, number, number]) => {
  const rgba = new Uint8Array(4 * width * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rgba.set([...colour(x, y), 255], 4 * (y * width + x));
  return { rgba, width, height };
};

describe("the mean brightness of a picture", () => {
  it.each([[640, 480], [48, 64], [7, 5]])("is that of its colour, in any size: %d×%d", (width, height) => {
    expect(meanLuma(picture(width, height, () => [100, 50, 200]))).toBeCloseTo(0.299 * 100 + 0.587 * 50 + 0.114 * 200, 6);
  });

  it("counts every part alike", () => {
    expect(meanLuma(picture(640, 480, (x, y) => (x < 160 && y < 240 ? [255, 255, 255] : [0, 0, 0])))).toBeCloseTo(255 / 8, 6);
  });
});
