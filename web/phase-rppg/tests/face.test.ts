import { describe, expect, it } from "vitest";
import { AreaCrop, square } from "../src/face/crop.js";
import { detectionDue } from "../src/face/detectionScheduler.js";
import { decimate, decode, STRIDES, nonMaximumSuppression } from "../src/face/detector.js";
import { backgroundMean, backgroundPoints, skinWeights } from "../src/face/skinMask.js";
import { Tracker } from "../src/face/tracker.js";
import { displaced } from "../src/session/skinSampler.js";
import { expectClose, floats, bytes, suite, picture, tolerance } from "./conformance.js";

describe("The conformance suite:", () => {
  it("crops", () => {
    for (const g of suite.crop) {
      const rgb = picture(g.rgb);
      expectClose(square(g.box), g.square);
      expectClose(new AreaCrop(g.square, 9, rgb.width, rgb.height).mean(rgb), floats(g.mean), tolerance("crop", "values"));
    }
  });

  it("skin and background", () => {
    const g = suite.skin;
    const rgb = picture(g.rgb);
    const cells = new AreaCrop(g.square, 16, rgb.width, rgb.height).mean(rgb);
    const weights = skinWeights(cells, 16, g.square, g.landmarks, g.face);
    expectClose(weights, floats(g.weights), tolerance("skin", "values"));
    expectClose(displaced(weights, 16, [1.3, -2.6]), floats(g.displaced), tolerance("skin", "values"));
    expectClose(backgroundMean(rgb, backgroundPoints(rgb.width, rgb.height, [g.face])), g.background, tolerance("skin", "values"));
  });

  it("the decoded output of the detector", () => {
    const g = suite.detect;
    const small = decimate(picture(g.rgb), 3);
    expect([...small.rgba].filter((_, i) => i % 4 !== 3)).toEqual([...bytes(g.decimated)]);
    const answer = Object.fromEntries(Object.entries(g.answer).map(([name, v]) => [name, Float32Array.from(floats(v as number[]))]));
    const kept = nonMaximumSuppression(STRIDES.flatMap((stride) => decode(answer, stride, g.width / stride, 0.7, 1)));
    expect(kept.length).toBe(g.kept.length);
    kept.forEach((one, i) => expectClose([one.score, ...one.box, ...one.landmarks.flat()], g.kept[i], tolerance("detect", "values")));
  });

  it.each([0, 1, 2, 3])("who is who (%i)", (seed) => {
    const { shift, steps } = suite.faces[seed];
    const tracker = new Tracker();
    for (const step of steps) {
      expect(detectionDue(tracker, step.t_s, shift)).toBe(step.due);
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
        expectClose(track.box, box, tolerance("faces", "values"));
      });
    }
  });
});
