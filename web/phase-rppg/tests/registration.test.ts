/** The same few frames of a moving face through the registration and skin sampler of Python and of the page. */

import { describe, expect, it } from "vitest";
import { FaceRegistration } from "../src/face/registration.js";
import type { Track } from "../src/face/tracker.js";
import { SkinSampler } from "../src/session/skinSampler.js";
import { expectClose, expectNear, floats, picture, suite, tolerance } from "./conformance.js";

const g = suite.moving;
const frames = g.frames.map(picture);

const CELLS = tolerance("moving", "cells");
const VALUES = tolerance("moving", "values");

describe("The conformance suite:", () => {
  it.each([0, 1])("where a face went (%i)", (index) => {
    const { size, steps, picture: last } = g.registration[index];
    const registration = new FaceRegistration(g.square, size, frames[0], g.t_s[0]);
    steps.forEach((want: any, k: number) => {
      registration.update(frames[k], g.t_s[k]);
      if (want.set_reference) registration.setReference(want.set_reference, frames[k]);
      expectNear(registration.shift, want.shift, CELLS);
      expectNear(registration.displacement, want.displacement, CELLS);
      expectNear(registration.detectionOffset, want.detection_offset, CELLS);
      expectNear(registration.box, want.box, CELLS);
      expectNear(registration.followingBox, want.following_box, CELLS);
      const before = registration.followingBox;
      registration.update(frames[k], g.t_s[k]);
      expect(registration.followingBox).toEqual(before); // the same frame again changes nothing
    });
    expectClose(registration.picture, floats(last), VALUES);
  });

  it("the samples of the skin sampler", () => {
    const track = (k: number): Track =>
      ({ box: g.sampler.steps[k].face, landmarks: g.sampler.steps[k].landmarks, seenS: g.t_s[k] }) as unknown as Track;
    const sampler = new SkinSampler(track(0), frames[0]);
    g.sampler.steps.forEach((want: any, k: number) => {
      sampler.updateMask(track(k), frames[k]);
      const row = sampler.sample(frames[k], g.t_s[k]);
      expectNear(row.slice(0, 3), want.row.slice(0, 3), tolerance("moving", "colour")); // colours
      expectNear(row.slice(3), want.row.slice(3), tolerance("moving", "face_widths")); // in face widths
      expectNear(sampler.box, want.box, CELLS);
      expectNear([sampler.shift], [want.shift], tolerance("moving", "face_widths"));
    });
    expectClose(sampler.mask, floats(g.sampler.skin), VALUES);
    expectClose(sampler.crop(frames[frames.length - 1]), floats(g.sampler.cut), VALUES);
  });
});
