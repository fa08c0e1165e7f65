import { describe, expect, it } from "vitest";
import type { Event, Reading, Reason, WindowResult } from "phase-rppg";
import { Announcer, announcement, note, type Present, Readout } from "../src/ui/readout";

const quality = {
  snr_db: 5, amplitude: 0.003, background: 0, motion: 0, coverage: 1, face_px: 120, luma: 120, clipped: 0,
  colourfulness: 0.4, fps: 30, max_gap_s: 0.05, support: 1, agreement: 1, visible_db: 20, background_coherence: 0, red: 0.4, blue: 0.5, track_sigma_bpm: 1, change_bpm: 1,
  beat_bpm: 70, beat_difference_bpm: 0, beat_spread: 0, beat_match: 1,
};
const face = (change: "appeared" | "lost" | "returned" | "ended", tS: number, id = 0): Event => ({ kind: "face", face: id, tS, change });
const window = (endS: number, what: number | Reason, id = 0, extra = {}): Event => {
  const reading: Reading = typeof what === "number"
    ? { bpm: what, low: what - 2, high: what + 2, pOk: 0.9, startS: endS - 10, endS }
    : { reason: what, pOk: 0.1, startS: endS - 10, endS };
  return { kind: "window", face: id, startS: endS - 10, endS, reading, peak: null, quality: { ...quality, ...extra }, spectrum: [] };
};
const seen = (...ids: number[]): Present[] => ids.map((id) => ({ id, box: [0, 0, 100 - 10 * id, 100] }));
const after = (...events: Event[]): Readout => {
  const readout = new Readout();
  for (const event of events) readout.take([event], event.kind === "face" ? event.tS : event.kind === "window" ? event.endS : 0, seen(0, 1));
  return readout;
};

describe("what is shown", () => {
  it("first asks for a face", () => {
    expect(after().shown).toMatchObject({ state: "searching", bpm: null });
  });

  it("counts down while the first window fills", () => {
    const readout = after(face("appeared", 1));
    readout.take([], 2.9, seen(0));
    readout.take([], 4.5, seen(0));
    expect(readout.shown).toMatchObject({ state: "measuring", guidance: "Hold still: 7 s to go.", bpm: null });
  });

  it("is unsure at first and steady after three readings that agree", () => {
    expect(after(face("appeared", 0), window(10, 72)).shown).toMatchObject({ state: "unsure", bpm: 72 });
    expect(after(face("appeared", 0), window(10, 72), window(11, 73), window(12, 74)).shown).toMatchObject({ state: "steady", bpm: 74 });
    expect(after(face("appeared", 0), window(10, 72), window(11, 80), window(12, 74)).shown.state).toBe("unsure");
    expect(after(face("appeared", 0), window(10, 72), window(11, "MOTION"), window(12, 74)).shown.state).toBe("unsure");
  });

  it("shows advice instead of a number for a window without a reading", () => {
    expect(after(face("appeared", 0), window(11, 72), window(12, "MOTION")).shown).toMatchObject({ state: "none", bpm: null, reason: "MOTION", guidance: expect.stringContaining("Hold still") });
  });

  it("clears the number when the face is lost, and restarts when it returns", () => {
    const readout = after(face("appeared", 0), window(10, 72), window(11, 72), window(12, 72), face("lost", 13));
    expect(readout.shown).toMatchObject({ state: "searching", bpm: null });
    readout.take([window(13, 72)], 13, []); // a window that still saw the face
    expect(readout.shown.bpm).toBeNull();
    readout.take([face("returned", 14), window(14, "FACE_LOST")], 14, seen(0));
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null });
  });

  it("never shows one face's number for another", () => {
    const readout = after(face("appeared", 0), window(10, 72), face("ended", 11), face("appeared", 11, 1));
    readout.take([window(12, 90, 0)], 12, seen(1));
    expect(readout.shown.bpm).toBeNull();
  });

  it("gives a hint that would improve the reading", () => {
    expect(after(face("appeared", 0), window(11, 72, 0, { luma: 40 })).shown.guidance).toContain("light");
    expect(after(face("appeared", 0), window(11, 72, 0, { face_px: 50 })).shown.guidance).toContain("closer");
  });

  it("clears the number after a gap between frames", () => {
    const readout = after(face("appeared", 9), window(10, 72), window(11, 72), window(12, 72));
    expect(readout.shown.state).toBe("steady");
    readout.take([], 15, seen(0));
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null });
    readout.take([window(15.5, "BAD_TIMESTAMPS")], 15.5, seen(0));
    expect(readout.shown.state).toBe("measuring");
  });

  it("clears a face that is not present, even without an event", () => {
    const readout = after(face("appeared", 9), window(10, 72));
    readout.take([], 10.1, []);
    expect(readout.shown).toMatchObject({ state: "searching", bpm: null });
  });
});

describe("a provisional number", () => {
  const early = (readout: Readout, tS: number, reading: Reading | null): void => readout.take([], tS, [{ ...seen(0)[0], provisional: reading }]);
  const estimate = (bpm: number): Reading => ({ bpm, low: bpm - 2, high: bpm + 2, pOk: 0.95, startS: 0, endS: 6 });

  it("is shown from its first estimate on, but never as a reading", () => {
    const readout = after(face("appeared", 0));
    readout.take([], 2, seen(0));
    readout.take([], 4, seen(0));
    early(readout, 6, estimate(70));
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null, about: 70, guidance: expect.stringContaining("About 70, still measuring") });
    early(readout, 7, { reason: "NO_PULSE", pOk: 0.6, probableBpm: 80, startS: 0, endS: 7 });
    expect(readout.shown).toMatchObject({ state: "measuring", bpm: null, about: null }); // refused: nothing is shown
  });

  it("gives way to the first window", () => {
    const readout = after(face("appeared", 0));
    early(readout, 1.5, estimate(70));
    readout.take([window(10, "NO_PULSE")], 3, seen(0));
    expect(readout.shown).toMatchObject({ state: "none", about: null });
  });

  it("of a refused window is grey, with its probability", () => {
    const readout = after(face("appeared", 0), window(11, "NO_PULSE", 0));
    const reading: Reading = { reason: "NO_PULSE", pOk: 0.775, pAlive: 0.8, probableBpm: 104.3, startS: 2, endS: 12 };
    readout.take([{ ...(window(12, "NO_PULSE") as WindowResult), reading }], 12, seen(0));
    expect(readout.shown).toMatchObject({ state: "none", bpm: null, about: 104.3, share: expect.closeTo(0.62) });
    expect(readout.shown.guidance).toContain("Perhaps 104: 62 % likely");
  });
});

describe("several people", () => {
  const two = (): Readout => after(face("appeared", 0, 0), face("appeared", 0, 1), window(10, 72, 0), window(10, 95, 1));

  it("each have their number, and the largest face is shown large", () => {
    const readout = two();
    expect(readout.mainFace).toBe(0);
    expect(readout.people.map(({ id, shown }) => [id, shown.bpm])).toEqual([[0, 72], [1, 95]]);
  });

  it("can be chosen, until the chosen one leaves", () => {
    const readout = two();
    readout.choose(1);
    expect(readout.shown.bpm).toBe(95);
    readout.take([face("lost", 11, 1)], 11, seen(0));
    expect([readout.mainFace, readout.shown.bpm]).toEqual([0, 72]);
    readout.choose(7); // nobody
    expect(readout.mainFace).toBe(0);
  });
});

describe("the announcement", () => {
  it("says what to do when there is no number", () => expect(announcement(note("none", "state.no-camera", "Connect one."))).toBe("no camera. Connect one."));

  it("tells a bad picture while measuring", () => {
    expect(announcement({ ...note("measuring", "state.measuring", "More light."), urgent: true })).toBe("measuring. More light.");
    expect(announcement({ ...note("measuring", "state.measuring", ""), about: 70.4 })).toBe("About 70 beats per minute, still measuring.");
  });
});

describe("a screen reader", () => {
  const steady = (bpm: number) => ({ ...note("steady", "state.steady", ""), bpm });

  it("hears the exact number, and small changes not every second", () => {
    const announcer = new Announcer();
    expect(announcer.update(steady(72), 0)).toBe("Steady at 72 beats per minute.");
    expect(announcer.update(steady(73), 1000)).toBeNull();
    expect(announcer.update(steady(76), 2000)).toBe("Steady at 76 beats per minute.");
    expect(announcer.update(steady(77), 33_000)).toBe("Steady at 77 beats per minute.");
  });

  it("hears another state at once, and another advice of the same state after a pause", () => {
    const announcer = new Announcer();
    announcer.update(steady(72), 0);
    expect(announcer.update(note("none", "state.none", "More light."), 100)).toBe("no reading. More light.");
    expect(announcer.update(note("none", "state.none", "Hold still."), 200)).toBeNull();
    expect(announcer.update(note("none", "state.none", "Hold still."), 5000)).toBe("no reading. Hold still.");
  });
});
