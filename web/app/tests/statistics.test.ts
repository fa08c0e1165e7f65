import type { FaceResult, Reading, Result, WindowResult } from "phase-rppg";
import { afterEach, describe, expect, it } from "vitest";
import { entryOf } from "../src/ui/history";
import { cardHtml, cardSvg, factsOf, noReadingText } from "../src/ui/share";
import { condensed, direction, mainReason, statistics, trendOf } from "../src/ui/statistics";
import { setLanguage } from "../src/ui/texts";
import { rateRange, trendMarkup } from "../src/ui/trendSvg";

const window = (endS: number, what: number | "NO_PULSE" | "MOTION", pOk = 0.95): WindowResult => {
  const span = { startS: endS - 10, endS, pOk };
  const reading: Reading = typeof what === "number" ? { bpm: what, low: what - 3, high: what + 2, ...span } : { reason: what, ...span };
  return { kind: "window", face: 0, startS: endS - 10, endS, reading, peak: null, quality: {} as never, spectrum: [] };
};
const faceOf = (windows: WindowResult[], summary: Reading): FaceResult =>
  ({ id: 0, summary, windows, wave: {} as never, beatsS: [], hrv: null, facePx: 100, seenS: 30 });
const estimate = (bpm: number): Reading => ({ bpm, low: bpm - 2, high: bpm + 2, pOk: 0.9, startS: 0, endS: 60 });
const rising = Array.from({ length: 51 }, (_, i) => window(10 + i, 60 + i / 5)); // 12 bpm per minute
const resultOf = (...faces: FaceResult[]): Result => ({ video: "<camera>", method: "pos", durationS: 60, faces, warnings: [] });

afterEach(() => setLanguage("en"));

describe("the statistics of a session", () => {
  it("are median, mean, range, slope and the time with a reading", () => {
    const found = statistics(faceOf(rising, estimate(65)))!;
    expect(found).toMatchObject({ medianBpm: 65, lowBpm: 60, highBpm: 70, shownShare: 1, grade: "high" });
    expect(found.meanBpm).toBeCloseTo(65, 6);
    expect(found.slopeBpmPerMin).toBeCloseTo(12, 6);
    expect(found.measuredS).toBeCloseTo(60, 6); // windows overlap
  });

  it("count a gap as no time, and a short session has no slope", () => {
    const found = statistics(faceOf([window(10, 70), window(40, 71)], estimate(70)))!;
    expect(found.measuredS).toBeCloseTo(20, 6);
    expect(statistics(faceOf([window(10, 70), window(39, 71)], estimate(70)))!.slopeBpmPerMin).toBeNull();
  });

  it("grade by the share of windows and by their probability", () => {
    const with_ = (good: number, refused: number, pOk: number) =>
      statistics(faceOf([...Array.from({ length: good }, (_, i) => window(10 + i, 70, pOk)), ...Array.from({ length: refused }, (_, i) => window(30 + i, "MOTION", 0.1))], estimate(70)))!.grade;
    expect([with_(9, 1, 0.95), with_(6, 4, 0.95), with_(3, 7, 0.95), with_(9, 1, 0.7)]).toEqual(["high", "medium", "low", "low"]);
  });

  it("are absent without a reading, and the most frequent reason is told", () => {
    const refused = [window(10, "MOTION"), window(11, "NO_PULSE"), window(12, "MOTION")];
    const face = faceOf(refused, { reason: "MOTION", pOk: 0, startS: 0, endS: 12 });
    expect(statistics(face)).toBeNull();
    expect(mainReason(refused)).toBe("MOTION");
    expect(noReadingText(face)).toContain("Hold still");
    expect(cardSvg(resultOf(face), face, new Date(0))).toBeNull();
    expect(entryOf(resultOf(face), null, new Date(0))).toBeNull();
  });

  it("name a direction only for a clear slope", () => expect([direction(1.9), direction(2.1), direction(-5)]).toEqual(["flat", "up", "down"]));
});

describe("a long trend", () => {
  const long = trendOf(Array.from({ length: 7200 }, (_, i) => window(10 + i, 60 + (i % 10))));

  it("is averaged to the wanted number of points, and its band holds every window", () => {
    const short = condensed(long, 100);
    expect(short.length).toBeLessThanOrEqual(101);
    expect(short.length).toBeGreaterThan(90);
    expect(short[50]).toMatchObject({ low: 57, high: 71 });
    expect(short[50].bpm).toBeCloseTo(64.5, 0);
  });

  it("stays as it is when it is short", () => expect(condensed(long.slice(0, 50), 100)).toEqual(long.slice(0, 50)));

  it("keeps gaps: refused windows, and pauses between windows", () => {
    const holes = trendOf([window(10, 70), window(11, "MOTION"), window(12, 70), window(20, 70)]);
    expect(condensed(holes, 100).map(({ bpm }) => bpm)).toEqual([70, null, 70, null, 70]);
  });

  it("is a line with its band, and a lonely reading is a dot", () => {
    const palette = { line: "#f00", band: "#fcc", mean: "#0f0", text: "#000", grid: "#ccc" };
    const markup = trendMarkup(trendOf([window(10, 70), window(11, 71), window(12, "MOTION"), window(13, 72)]), 71, { width: 400, height: 100, fontPx: 10 }, palette);
    expect([...markup.matchAll(/<polyline/g)].length).toBe(1);
    expect([...markup.matchAll(/<polygon/g)].length).toBe(2);
    expect([...markup.matchAll(/<circle/g)].length).toBe(1);
    expect(markup).toContain("trend-mean");
    expect(markup).not.toContain("NaN");
  });

  it("never shows a range of less than 30 bpm", () => expect(rateRange(70, 72)).toEqual([50, 90]));
});

describe("a saved result", () => {
  it("is one HTML document without script and with escaped names", () => {
    const html = cardHtml(resultOf(faceOf(rising, estimate(65))), new Date(0));
    expect(html).toContain("&lt;camera&gt;");
    expect(html).not.toMatch(/<script|<camera>|https?:\/\/(?!www\.w3\.org)/);
    expect(html).toContain(">65 <small>");
  });

  it("has the words of the chosen language", () => {
    setLanguage("de");
    const face = faceOf(rising, estimate(65));
    expect(cardHtml(resultOf(face), new Date(0))).toContain('lang="de"');
    expect(factsOf(face, statistics(face)!, 60).map(([, value]) => value)).toContain("65,0");
  });

  it("in the history has numbers and a short trend", () => {
    const entry = entryOf(resultOf(faceOf(rising, estimate(65))), 3, new Date(5))!;
    expect(entry).toMatchObject({ id: 5, source: "<camera>", numbers: { medianBpm: 65 } });
    expect(entry.trend.length).toBe(51);
  });
});
