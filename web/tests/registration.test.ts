/** The same few frames of a moving face through the registration and skin sampler of Python and of the page. */

import { describe, expect, it } from "vitest";
import { FaceRegistration } from "../src/face/registration";
import type { Track } from "../src/face/tracker";
import { SkinSampler } from "../src/session/skinSampler";
import { expectClose, floats, goldens, picture } from "./goldens";

const g = goldens.moving;
const frames = g.frames.map(picture);

/** In cells, or in pixels. Python's sums are in single precision, which costs a millionth of them. */
function expectNear(got: readonly number[], want: readonly number[], tolerance = 1e-5): void {
  expect(got.length).toBe(want.length);
  got.forEach((value, i) => expect(Math.abs(value - want[i])).toBeLessThan(tolerance));
}

describe("Python and the page agree on", () => {
  it.each([0, 1])("where a face went (%i)", (index) => {
    const { size, steps, picture: last } = g.registration[index];
    const registration = new FaceRegistration(g.square, size, frames[0], g.t_s[0]);
    steps.forEach((want: any, k: number) => {
      registration.see(frames[k], g.t_s[k]);
      if (want.place) registration.place(want.place, frames[k]);
      expectNear(registration.shift, want.shift);
      expectNear(registration.moved, want.moved);
      expectNear(registration.offCentre, want.off_centre);
      expectNear(registration.box, want.box);
      expectNear(registration.along, want.along);
      const along = registration.along;
      registration.see(frames[k], g.t_s[k]);
      expect(registration.along).toEqual(along); // a frame that was seen before says nothing new
    });
    expectClose(registration.picture, floats(last), 1e-6);
  });

  it("the samples of the skin sampler", () => {
    const track = (k: number): Track =>
      ({ box: g.sampler.steps[k].face, landmarks: g.sampler.steps[k].landmarks, seenS: g.t_s[k] }) as unknown as Track;
    const sampler = new SkinSampler(track(0), frames[0]);
    g.sampler.steps.forEach((want: any, k: number) => {
      sampler.updateMask(track(k), frames[k]);
      const row = sampler.measure(frames[k], g.t_s[k]);
      expectNear(row.slice(0, 3), want.row.slice(0, 3), 1e-4); // colours
      expectNear(row.slice(3), want.row.slice(3), 1e-6); // in face widths
      expectNear(sampler.box, want.box);
      expectNear([sampler.shift], [want.shift], 1e-6);
    });
    expectClose(sampler.skin, floats(g.sampler.skin), 1e-5);
    expectClose(sampler.cut(frames[frames.length - 1]), floats(g.sampler.cut), 1e-6);
  });
});
