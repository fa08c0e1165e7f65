import { describe, expect, it } from "vitest";
import type { Event } from "../src/session/results";
import type { Reading, Reason } from "../src/types";
import { note, Readout, spoken } from "../src/ui/readout";

const quality = {
  snr_db: 5, amplitude: 0.003, background: 0, motion: 0, coverage: 1, face_px: 120, luma: 120, clipped: 0,
  colourfulness: 0.4, fps: 30, max_gap_s: 0.05, support: 1, agreement: 1, visible_db: 20, background_coherence: 0, red: 0.4,
};
const face = (change: "appeared" | "lost" | "returned" | "ended", tS: number, id = 0): Event => ({ kind: "face", face: id, tS, change });
const window = (endS: number, what: number | Reason, id = 0, extra = {}): Event => {
  const reading: Reading = typeof what === "number"
    ? { bpm: what, low: what - 2, high: what + 2, pOk: 0.9, startS: endS - 10, endS }
    : { reason: what, pOk: 0.1, startS: endS - 10, endS };
  return { kind: "window", face: id, startS: endS - 10, endS, reading, peak: null, quality: { ...quality, ...extra }, spectrum: [] };
};
const after = (...events: Event[]): Readout => {
  const readout = new Readout();
  for (const event of events) readout.take([event], event.kind === "face" ? event.tS : event.kind === "window" ? event.endS : 0, [0, 1]);
  return readout;
};

describe("what is shown", () => {
  it("asks for a face first", () => {
    expect(after().shown).toMatchObject({ state: "searching", bpm: null });
  });

  it("counts down while the first window fills", () => {
    const readout = after(face("appeared", 1));
    readout.take([], 2.9, [0]);
    readout.take([], 4.5, [0]);
    expect(readout.shown).toMatchObject({ state: "measuring", guidance: "Hold still: 7 s to go.", bpm: null });
  });

  it("is unsure at first and steady after three readings that agree", () => {
    expect(after(face("appeared", 0), window(10, 72)).shown).toMatchObject({ state: "unsure", bpm: 72 });
    expect(after(face("appeared", 0), window(10, 72), window(11, 73), window(12, 74)).shown).toMatchObject({ state: "steady", bpm: 74 });
    expect(after(face("appeared", 0), window(10, 72), window(11, 80), window(12, 74)).shown.state).toBe("unsure");
    expect(after(face("appeared", 0), window(10, 72), window(11, "MOTION"), window(12, 74)).shown.state).toBe("unsure");
  });

  it("shows no number for a window without a reading, and says what to do", () => {
    expect(after(face("appeared", 0), window(11, 72), window(12, "MOTION")).shown).toMatchObject({ state: "none", bpm: null, reason: "MOTION", guidance: expect.stringContaining("Hold still") });
  });

  it("clears the number the moment the face is lost, and begins anew when it returns", () => {
    const readout = after(face("appeared", 0), window(10, 72), window(11, 72), window(12, 72), face("lost", 13));
    expect(readout.shown).toMatchObject({ state: "searching", bpm: null });
    readout.take([window(13, 72)], 13, []); // a window that still saw the face
    expect(readout.shown.bpm).toBeNull();
    readout.take([face("returned", 14), window(14, "FACE_LOST")], 14, [0]);
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null });
  });

  it("never shows one face's number for another", () => {
    const readout = after(face("appeared", 0), window(10, 72), face("ended", 11), face("appeared", 11, 1));
    readout.take([window(12, 90, 0)], 12, [1]);
    expect(readout.shown.bpm).toBeNull();
  });

  it("hints at what would make a reading better", () => {
    expect(after(face("appeared", 0), window(11, 72, 0, { luma: 40 })).shown.guidance).toContain("light");
    expect(after(face("appeared", 0), window(11, 72, 0, { face_px: 50 })).shown.guidance).toContain("closer");
  });

  it("forgets the number when the picture stood still for a while", () => {
    const readout = after(face("appeared", 9), window(10, 72), window(11, 72), window(12, 72));
    expect(readout.shown.state).toBe("steady");
    readout.take([], 15, [0]);
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null });
    readout.take([window(15.5, "BAD_TIMESTAMPS")], 15.5, [0]);
    expect(readout.shown.state).toBe("measuring");
  });

  it("forgets a face that is no longer followed, even without a word of goodbye", () => {
    const readout = after(face("appeared", 9), window(10, 72));
    readout.take([], 10.1, []);
    expect(readout.shown).toMatchObject({ state: "searching", bpm: null });
  });
});

describe("what is said aloud", () => {
  const at = (bpm: number, label = "steady") => ({ ...note("steady", label, "The report is below."), bpm, low: bpm - 1, high: bpm + 1 });

  it("changes only when the rate does", () => {
    expect(spoken(at(71))).toBe(spoken(at(72)));
    expect(spoken(at(71))).toContain("70 beats");
    expect(spoken(at(71))).not.toBe(spoken(at(84)));
  });

  it("names the number of a whole video exactly", () => expect(spoken(at(83.6, "whole video"))).toContain("whole video: 84 beats"));

  it("says what to do when there is no number", () => expect(spoken(note("none", "no camera", "Plug one in."))).toBe("no camera. Plug one in."));
});
