import { describe, expect, it } from "vitest";
import { AreaCrop, square } from "../src/face/crop";
import { decimate, decode, STRIDES, withoutDoubles } from "../src/face/detector";
import { backgroundMean, backgroundPoints, skinWeights } from "../src/face/skinMask";
import { Tracker } from "../src/face/tracker";
import { displaced } from "../src/session/skinSampler";
import { expectClose, floats, goldens, picture } from "./goldens";

describe("Python and the page agree on", () => {
  it("crops", () => {
    for (const g of goldens.crop) {
      const rgb = picture(g.rgb);
      expectClose(square(g.box), g.square);
      expectClose(new AreaCrop(g.square, 9, rgb.width, rgb.height).mean(rgb), floats(g.mean), 1e-6);
    }
  });

  it("skin and background", () => {
    const g = goldens.skin;
    const rgb = picture(g.rgb);
    const cells = new AreaCrop(g.square, 16, rgb.width, rgb.height).mean(rgb);
    const weights = skinWeights(cells, 16, g.square, g.landmarks, g.face);
    expectClose(weights, floats(g.weights), 1e-5);
    expectClose(displaced(weights, 16, [1.3, -2.6]), floats(g.displaced), 1e-5);
    expectClose(backgroundMean(rgb, backgroundPoints(rgb.width, rgb.height, [g.face])), g.background, 1e-6);
  });

  it("what the detector's answer means", () => {
    const g = goldens.detect;
    const small = decimate(picture(g.rgb), 3);
    expect([...small.rgba].filter((_, i) => i % 4 !== 3)).toEqual([...floats(g.decimated)]);
    const answer = Object.fromEntries(Object.entries(g.answer).map(([name, v]) => [name, Float32Array.from(floats(v as number[]))]));
    const kept = withoutDoubles(STRIDES.flatMap((stride) => decode(answer, stride, g.width / stride, 0.7, 1)));
    expect(kept.length).toBe(g.kept.length);
    kept.forEach((one, i) => expectClose([one.score, ...one.box, ...one.landmarks.flat()], g.kept[i], 1e-5));
  });

  it.each([0, 1, 2, 3])("who is who (%i)", (seed) => {
    const { shift, steps } = goldens.faces[seed];
    const tracker = new Tracker();
    for (const step of steps) {
      expect(tracker.due(step.t_s, shift)).toBe(step.due);
      const found = step.found.map((one: any) => ({ ...one, landmarks: [] }));
      const changes = tracker.update(step.t_s, found);
      const ids = (tracks: readonly { id: number }[]): number[] => tracks.map((track) => track.id);
      expect({
        born: ids(changes.born), moved: ids(changes.moved), lost: ids(changes.lost),
        found_again: ids(changes.foundAgain), ended: ids(changes.ended),
      }).toEqual(step.changes);
      tracker.tracks.forEach((track, i) => {
        const [id, lost, ...box] = step.boxes[i];
        expect([track.id, track.lost]).toEqual([id, lost]);
        expectClose(track.box, box);
      });
    }
  });
});
