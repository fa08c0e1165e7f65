import { describe, expect, it, vi } from "vitest";
import { CameraLock } from "../src/device/cameraLock";
import { phaseAt } from "../src/ui/breathing";
import { advice, Coach, type Meters } from "../src/ui/coach";
import { DEFAULTS, parse } from "../src/ui/settings";

const good = { luma: 130, facePx: 150, clipped: 0, x: 0, y: 0 };
const look = (face: Partial<typeof good> | null, fps: number | null = 30, tS = 0, frameLuma = 120) =>
  ({ tS, face: face && { ...good, ...face }, frameLuma, fps });

describe("the meters of the picture", () => {
  it("are good for a near, lit, still face", () => {
    const meters = new Coach().update(look({}));
    expect(Object.values(meters).map(({ level }) => level)).toEqual(["good", "good", "good", "good"]);
    expect(advice(meters)).toBeNull();
  });

  it.each([
    ["light", { luma: 20 }, "bad"], ["light", { luma: 50 }, "fair"], ["light", { clipped: 0.9 }, "bad"], ["light", { clipped: 0.2 }, "fair"],
    ["distance", { facePx: 20 }, "bad"], ["distance", { facePx: 60 }, "fair"],
  ] as const)("judge %s at the first frame: %o", (name, face, level) => {
    const meters = new Coach().update(look(face));
    expect(meters[name].level).toBe(level);
    expect(advice(meters) === null).toBe(level !== "bad");
  });

  it("tell the dark before a face is found", () => {
    const meters = new Coach().update(look(null, 30, 0, 8));
    expect(meters.light.level).toBe("bad");
    expect(advice(meters)).toContain("light");
    expect(new Coach().update(look(null)).light.level).toBe("unknown");
  });

  it("tell a slow camera", () => {
    expect([5, 15, 30, null].map((fps) => new Coach().update(look({}, fps)).speed.level)).toEqual(["bad", "fair", "good", "unknown"]);
  });

  it("react to motion within a few frames, and forget it within a second", () => {
    const coach = new Coach();
    const levels = Array.from({ length: 61 }, (_, i) => coach.update(look({ x: i >= 10 && i < 15 ? 0.3 : 0 }, 30, i / 30)).motion.level);
    expect(levels[9]).toBe("good");
    expect(levels[10]).toBe("bad");
    expect(levels[60]).toBe("good");
  });
});

describe("the lock of a camera", () => {
  const meters = (level: Meters["light"]["level"]): Meters => ({ ...new Coach().update(look({})), light: { level, share: 1, word: "coach.good", advice: null } });
  const camera = (able: object) => {
    const asked: unknown[] = [];
    const track = {
      readyState: "live", getCapabilities: () => able, getSettings: () => ({ exposureTime: 100, colorTemperature: 4500 }),
      applyConstraints: (wanted: unknown) => (asked.push(wanted), Promise.resolve()),
    };
    return { asked, lock: new CameraLock(track as unknown as MediaStreamTrack) };
  };
  const able = { exposureMode: ["manual", "continuous"], whiteBalanceMode: ["manual", "continuous"] };

  it("fixes exposure and white balance when the light has been good, and frees them when it is bad", async () => {
    const { lock, asked } = camera(able);
    lock.update(0, meters("good"));
    lock.update(1, meters("good"));
    expect(asked).toEqual([]);
    lock.update(2, meters("good"));
    await vi.waitFor(() => expect(lock.locked).toBe(true));
    expect(asked[0]).toEqual({ advanced: [{ exposureMode: "manual", exposureTime: 100, whiteBalanceMode: "manual", colorTemperature: 4500 }] });
    lock.update(3, meters("bad"));
    await vi.waitFor(() => expect(lock.locked).toBe(false));
    expect(asked[1]).toEqual({ advanced: [{ exposureMode: "continuous", whiteBalanceMode: "continuous" }] });
  });

  it("asks a camera without these modes for nothing", async () => {
    const { lock, asked } = camera({});
    for (let tS = 0; tS < 10; tS++) {
      lock.update(tS, meters("good"));
      await Promise.resolve();
    }
    expect([asked, lock.locked]).toEqual([[], false]);
  });
});

describe("the breathing guide", () => {
  it("breathes in for two fifths of a breath and out for the rest", () => {
    expect(phaseAt(0, 6)).toMatchObject({ part: "in", fullness: 0 });
    expect(phaseAt(3.999, 6).part).toBe("in");
    expect(phaseAt(3.999, 6).fullness).toBeCloseTo(1, 3);
    expect(phaseAt(4.001, 6).part).toBe("out");
    expect(phaseAt(9.999, 6).fullness).toBeCloseTo(0, 3);
    expect(phaseAt(10, 6).part).toBe("in");
  });

  it("shows the same in steps", () => {
    expect([0, 2, 3.9, 4.1, 7.1, 9.9].map((tS) => phaseAt(tS, 6).step)).toEqual([1, 4, 6, 6, 3, 1]);
  });
});

describe("stored settings", () => {
  it("are read back", () => expect(parse(JSON.stringify({ ...DEFAULTS, language: "de", shortcuts: false }))).toEqual({ ...DEFAULTS, language: "de", shortcuts: false }));
  it.each([null, "", "x", "3", "[]", '{"language":"xx","theme":3,"mask":"yes","unknown":1}'])("that are malformed become the defaults: %s", (text) => expect(parse(text)).toEqual(DEFAULTS));
  it("keep no history unless the user wants it", () => expect(DEFAULTS.history).toBe(false));
});
