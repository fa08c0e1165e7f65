/** The same little film through Python's session and through the page's. */

import { describe, expect, it } from "vitest";
import type { Detection, Detector } from "../src/face/detector";
import { read } from "../src/session/calibration";
import { SessionConfig } from "../src/session/config";
import { csvText, document as toDocument } from "../src/session/document";
import type { PulseModel } from "../src/session/pulseModel";
import { Collector } from "../src/session/offline";
import type { Event, WindowResult } from "../src/session/results";
import { Session } from "../src/session/session";
import { isEstimate, type Picture, type Point } from "../src/types";
import { expectClose, goldens } from "./goldens";

const film = goldens.film;

/** Picture number i; the twin of scripted.frame. */
function draw(i: number, tS: number, bpm: number, strength: number): Picture {
  const { width, height } = film;
  const rgba = new Uint8Array(width * height * 4).fill(255);
  const left = 12 + (i > 150 ? 2 : 0);
  const away = tS >= film.away_s[0] && tS < film.away_s[1];
  const beat = strength * Math.sin(((2 * Math.PI * bpm) / 60) * tS);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const inside = ((x - left - 17) / 17) ** 2 + ((y - 22) / 20) ** 2 <= 1;
      for (let c = 0; c < 3; c++) {
        const skin = [150, 105, 85][c] - beat * [0.3, 0.9, 0.5][c] + 0.5 * (x % 3);
        const wall = [60, 70, 80][c] + ((Math.floor(x / 8) + Math.floor(y / 8)) % 2) * 30;
        const noise = (3 * ((x * (73 + i) + y * (151 + 5 * i) + i * i * 37 + c * 17) % 97)) / 97;
        rgba[(y * width + x) * 4 + c] = Math.floor((inside && !away ? skin : wall) + noise);
      }
    }
  rgba.fill(away ? 0 : 1, 0, 3);
  rgba.fill(left, 4, 7);
  return { rgba, width, height };
}

const detector = {
  async detect({ rgba }: Picture): Promise<Detection[]> {
    if (rgba[0] !== 1) return [];
    const landmarks = film.marks.map(([x, y]: Point): Point => [x + rgba[4], y + 2]);
    return [{ box: [rgba[4], 2, film.face[0], film.face[1]], score: 0.9, landmarks }];
  },
  async search(picture: Picture): Promise<Detection[]> {
    return detector.detect(picture);
  },
} as unknown as Detector;

class MeanGreen implements PulseModel {
  readonly name = "mean-green";
  readonly fps = 30;
  readonly size = 12;
  readonly delayFrames = 2;
  private waiting = [0, 0];

  fresh(): PulseModel {
    return new MeanGreen();
  }

  async step(crops: readonly Uint8Array[]): Promise<Float32Array> {
    for (const crop of crops) {
      let green = 0;
      for (let i = 1; i < crop.length; i += 3) green += crop[i];
      this.waiting.push(100 - green / (crop.length / 3));
    }
    return Float32Array.from(this.waiting.splice(0, crops.length));
  }
}

describe("Python and the page agree on", () => {
  it.each([0, 1, 2])("the scripted film (%i)", async (index) => {
    const want = goldens.sessions[index];
    const model = want.method === "model" ? new MeanGreen() : null;
    const session = new Session(new SessionConfig(read(want.calibration, "goldens"), { model, faces: "largest" }), detector);
    const events: Event[] = [];
    for (const [i, tS] of film.times_s.entries()) events.push(...(await session.push(draw(i, tS, want.bpm, want.strength), tS)));
    events.push(...(await session.finish()));

    expect(events.filter((event) => event.kind === "face").map((event) => [event.face, event.tS, event.change])).toEqual(want.faces);
    const windows = events.filter((event): event is WindowResult => event.kind === "window");
    expect(windows.length).toBe(want.windows.length);
    windows.forEach((window, i) => expectWindow(window, want.windows[i]));

    const collected = new Collector();
    collected.take(events);
    const faces = collected.faces();
    expect(faces.length).toBe(want.waves.length);
    faces.forEach((face, i) => {
      const [values, valid, beats] = want.waves[i];
      expect([...face.wave.valid]).toEqual(valid);
      expectClose(face.wave.values, values, 0.01);
      expect(face.beatsS.length).toBe(beats.length);
      face.beatsS.forEach((beat, k) => expect(Math.abs(beat - beats[k])).toBeLessThan(1e-3));
    });
    const result = { video: "film", method: want.document.method, durationS: 19, faces, warnings: [] };
    expect(shape(toDocument(result))).toEqual(shape(want.document));
    expect(csvText(result).split("\n").length).toBe(want.csv.split("\n").length);
    expect(csvText(result).split("\n")[0]).toBe(want.csv.split("\n")[0]);
  });
});

function expectWindow(got: WindowResult, want: any): void {
  expect(got.startS).toBeCloseTo(want.start_s, 9);
  expect(got.endS).toBeCloseTo(want.end_s, 9);
  for (const [name, value] of Object.entries(want.quality as Record<string, number>)) {
    const mine = got.quality[name as keyof typeof got.quality];
    const unit = name.endsWith("_db") ? 10 / Math.LN10 : 1; // two per cent of a power are 0.087 dB
    expect(Math.abs(mine - value), `${name} ${mine} ${value}`).toBeLessThan(0.02 * (unit + Math.abs(value)));
  }
  // Faces are found by two runtimes, so features agree to a percent or so; the gate's slope makes that a thousandth of p_ok.
  expect(Math.abs(got.reading.pOk - want.reading.p_ok)).toBeLessThan(0.002);
  if (isEstimate(got.reading)) for (const name of ["bpm", "low", "high"] as const) expect(got.reading[name]).toBeCloseTo(want.reading[name], 2);
  else expect(got.reading.reason).toBe(want.reading.reason);
}

/** Names, types and words of a document, with numbers rounded away. */
function shape(value: unknown): unknown {
  if (typeof value === "number") return "number";
  if (Array.isArray(value)) return value.map(shape);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shape(item)]));
  return value;
}
