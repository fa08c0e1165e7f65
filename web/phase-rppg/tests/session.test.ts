/** The same scripted recording through the sessions of Python and of the page. */

import { describe, expect, it } from "vitest";
import type { Detection, Detector } from "../src/face/detector.js";
import { read } from "../src/session/calibration.js";
import { SessionConfig } from "../src/session/config.js";
import { METHODS } from "../src/session/windowAnalyzer.js";
import { csvText, document as toDocument } from "../src/session/document.js";
import type { PulseModel } from "../src/session/pulseModel.js";
import { Collector } from "../src/session/offline.js";
import type { Event, WindowResult } from "../src/session/results.js";
import { Session } from "../src/session/session.js";
import { isEstimate, type Picture, type Point, type Reading } from "../src/types.js";
import { expectClose, expectNear, index, suite, tolerance } from "./conformance.js";

const film = suite.film;

/** Picture number i; a port of scripted.frame. */
function draw(i: number, tS: number, bpm: number, strength: number, cut: boolean): Picture {
  const { width, height } = film;
  const rgba = new Uint8Array(width * height * 4).fill(255);
  const left = 12 + (i > 150 ? 2 : 0);
  const away = tS >= film.away_s[0] && tS < film.away_s[1];
  const another = cut && i >= film.cut_frame;
  const beat = strength * Math.sin(((2 * Math.PI * bpm) / 60) * tS);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const inside = ((x - left - 17) / 17) ** 2 + ((y - 22) / 20) ** 2 <= 1;
      for (let c = 0; c < 3; c++) {
        const skin = (another ? film.cut_skin : film.skin)[c] - beat * [0.3, 0.9, 0.5][c] + (another ? 30 * (Math.floor(y / 6) % 2) : 0.5 * (x % 3));
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

describe("The conformance suite:", () => {
  it.each(Object.keys(suite.sessions))("scripted session %s", async (name) => {
    const want = suite.sessions[name];
    const model = want.method === "model" ? new MeanGreen() : null;
    const session = new Session(new SessionConfig(read(want.calibration, "the suite"), { model, faces: "largest", contextS: want.context_s }), detector);
    const events: Event[] = [];
    for (const [i, tS] of film.times_s.entries()) events.push(...(await session.push(draw(i, tS, want.bpm, want.strength, want.cut), tS)));
    events.push(...(await session.finish()));

    expect(events.filter((event) => event.kind === "face").map((event) => [event.face, event.tS, event.change])).toEqual(want.faces);
    const windows = events.filter((event): event is WindowResult => event.kind === "window");
    expect(windows.length).toBe(want.windows.length);
    windows.forEach((window, i) => expectWindow(window, want.windows[i]));

    const collected = new Collector(want.context_s > 0 ? read(want.calibration, "the suite") : null);
    collected.take(events);
    const faces = collected.faces();
    expect(faces.length).toBe(want.waves.length);
    faces.forEach((face, i) => {
      const [values, valid, beats] = want.waves[i];
      expect([...face.wave.valid]).toEqual(valid);
      expectClose(face.wave.values, values, tolerance("sessions", "wave"));
      expectReading(face.summary, want.summaries[i]);
      expectNear(face.beatsS, beats, tolerance("sessions", "beats_s"));
    });
    const result = { video: "film", method: want.document.method, durationS: 19, faces, warnings: [] };
    expect(shape(toDocument(result))).toEqual(shape(want.document));
    expect(csvText(result).split("\n").length).toBe(want.csv.split("\n").length);
    expect(csvText(result).split("\n")[0]).toBe(want.csv.split("\n")[0]);
  });
});

describe("what the port has", () => {
  it("is what the suite says", () => {
    expect(index.ported.methods).toEqual(Object.keys(METHODS).sort());
    expect(index.ported.events.length).toBe(3); // face, wave, window
    const read = new Set<string>();
    for (const model of [new MeanGreen(), null]) // a model has its own name and frame rate
      new SessionConfig({} as never, new Proxy({}, { get: (_, name) => (read.add(String(name)), name === "model" ? model : undefined) }));
    const options = [...read].map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)).sort();
    expect(options).toEqual(index.ported.options);
  });
});

function expectWindow(got: WindowResult, want: any): void {
  expectNear([got.startS, got.endS], [want.start_s, want.end_s], 1e-9);
  for (const [name, value] of Object.entries(want.quality as Record<string, number>)) {
    const mine = got.quality[name as keyof typeof got.quality];
    const unit = name.endsWith("_db") ? 10 / Math.LN10 : 1; // two per cent of a power are 0.087 dB
    expect(Math.abs(mine - value), `${name} ${mine} ${value}`).toBeLessThan(tolerance("sessions", "quality") * (unit + Math.abs(value)));
  }
  expectReading(got.reading, want.reading);
}

function expectReading(got: Reading, want: any): void {
  // Faces are found by two runtimes, so features agree to a percent or so; the gate's slope makes that a thousandth of p_ok.
  expectNear([got.pOk], [want.p_ok], tolerance("sessions", "p_ok"));
  if (isEstimate(got)) for (const name of ["bpm", "low", "high"] as const) expectNear([got[name]], [want[name]], tolerance("sessions", "bpm"));
  else expect([got.reason, got.probableBpm?.toFixed(1)]).toEqual([want.reason, want.probable_bpm?.toFixed(1)]);
}

/** Names, types and texts of a document, without numbers. */
function shape(value: unknown): unknown {
  if (typeof value === "number") return "number";
  if (Array.isArray(value)) return value.map(shape);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shape(item)]));
  return value;
}
