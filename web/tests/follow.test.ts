/** The same few frames of a moving face through Python's follower and meter, and through the page's. */

import { describe, expect, it } from "vitest";
import { Follower } from "../src/face/follow";
import type { Track } from "../src/face/track";
import { Meter } from "../src/pipeline/meter";
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
    const { size, steps, picture: last } = g.follower[index];
    const follower = new Follower(g.square, size, frames[0], g.t_s[0]);
    steps.forEach((want: any, k: number) => {
      follower.see(frames[k], g.t_s[k]);
      if (want.place) follower.place(want.place, frames[k]);
      expectNear(follower.shift, want.shift);
      expectNear(follower.moved, want.moved);
      expectNear(follower.offCentre, want.off_centre);
      expectNear(follower.box, want.box);
      expectNear(follower.along, want.along);
      const along = follower.along;
      follower.see(frames[k], g.t_s[k]);
      expect(follower.along).toEqual(along); // a frame that was seen before says nothing new
    });
    expectClose(follower.picture, floats(last), 1e-6);
  });

  it("what a meter says of it", () => {
    const track = (k: number): Track =>
      ({ box: g.meter.steps[k].face, landmarks: g.meter.steps[k].landmarks, seenS: g.t_s[k] }) as unknown as Track;
    const meter = new Meter(track(0), frames[0]);
    g.meter.steps.forEach((want: any, k: number) => {
      meter.look(track(k), frames[k]);
      const row = meter.measure(frames[k], g.t_s[k]);
      expectNear(row.slice(0, 3), want.row.slice(0, 3), 1e-4); // colours
      expectNear(row.slice(3), want.row.slice(3), 1e-6); // in face widths
      expectNear(meter.box, want.box);
      expectNear([meter.shift], [want.shift], 1e-6);
    });
    expectClose(meter.skin, floats(g.meter.skin), 1e-5);
    expectClose(meter.cut(frames[frames.length - 1]), floats(g.meter.cut), 1e-6);
  });
});
