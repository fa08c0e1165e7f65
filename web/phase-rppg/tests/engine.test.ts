import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Backlog } from "../src/capture/backlog.js";
import { Engine } from "../src/engine.js";
import type { FromWorker, ToWorker } from "../src/protocol.js";

const picture = () => ({ rgba: new Uint8Array(4), width: 1, height: 1 });

/** A worker that answers at once, until it is told to die. */
class StubWorker {
  static all: StubWorker[] = [];
  static loads = true;
  onmessage: ((event: { data: FromWorker }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  dead = false;
  readonly received: ToWorker[] = [];

  constructor(readonly url: string) {
    StubWorker.all.push(this);
  }

  postMessage(message: ToWorker): void {
    this.received.push(message);
    if (this.dead) return;
    if (message.kind === "load" && !StubWorker.loads) this.onerror?.({ message: "" });
    else if (message.kind === "load") this.answer({ kind: "ready", method: "pos", about: "", calibrations: {} });
    if (message.kind === "frame")
      this.answer({ kind: "frame", tS: message.tS, faces: [{ id: 4 }], events: [] } as unknown as FromWorker);
    if (message.kind === "finish") this.answer({ kind: "finished", events: [], frameCount: 7, faceSeen: true });
  }

  terminate(): void {
    this.dead = true;
  }

  answer(data: FromWorker): void {
    this.onmessage?.({ data });
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  StubWorker.all = [];
  StubWorker.loads = true;
  vi.stubGlobal("Worker", StubWorker);
  vi.stubGlobal("document", { baseURI: "https://page.example/app/", hidden: false });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function running(file = false): Promise<{ engine: Engine; failures: string[] }> {
  const engine = new Engine({ assets: "./files" });
  const failures: string[] = [];
  engine.onFailed = (problem) => failures.push(problem);
  await engine.load();
  engine.start(undefined, file);
  return { engine, failures };
}

describe("the engine", () => {
  it("finds its files in the folder of assets", async () => {
    await running();
    expect(StubWorker.all[0].url).toBe("https://page.example/app/files/worker.js");
    expect(StubWorker.all[0].received[0]).toEqual({ kind: "load", base: "https://page.example/app/files/", wasm: "https://page.example/app/files/ort-wasm-simd-threaded.wasm" });
  });

  it("replaces a dead worker, and the session continues with new faces", async () => {
    const { engine, failures } = await running();
    const frames: number[] = [];
    let restarts = 0;
    engine.onFrame = ({ tS }) => frames.push(tS);
    engine.onRestart = () => (restarts += 1);
    engine.push({ picture: picture(), tS: 0 });
    StubWorker.all[0].dead = true;
    engine.push({ picture: picture(), tS: 1 });
    await vi.advanceTimersByTimeAsync(11_000);
    expect([restarts, StubWorker.all.length, engine.inFlight]).toEqual([1, 2, 0]);
    expect(StubWorker.all[1].received.map(({ kind }) => kind)).toEqual(["load", "start"]);
    expect(StubWorker.all[1].received[1]).toMatchObject({ firstFace: 5 });
    engine.push({ picture: picture(), tS: 2 });
    expect(frames).toEqual([0, 2]);
    expect(failures).toEqual([]);
  });

  it("replaces a worker that fails, but not for ever", async () => {
    const { failures } = await running();
    for (let i = 0; i < 4; i++) {
      StubWorker.all[StubWorker.all.length - 1].answer({ kind: "failed", problem: "out of memory" });
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(StubWorker.all.length).toBe(4);
    expect(failures).toEqual(["out of memory"]);
  });

  it("does not continue a file, whose frames are lost, and can measure again", async () => {
    const { engine, failures } = await running(true);
    StubWorker.all[0].dead = true;
    engine.push({ picture: picture(), tS: 1 });
    await vi.advanceTimersByTimeAsync(11_000);
    expect(failures.length).toBe(1);
    expect(failures[0]).toContain("has stopped");
    await engine.load();
    expect(StubWorker.all.length).toBe(2);
  });

  it("ends even if the worker is dead", async () => {
    const { engine } = await running();
    StubWorker.all[0].dead = true;
    const done = engine.finish();
    await vi.advanceTimersByTimeAsync(11_000);
    expect((await done).events).toEqual([]);
  });

  it("names a missing worker and tries again at the next load", async () => {
    StubWorker.loads = false;
    const engine = new Engine({ assets: "./files" });
    await expect(engine.load()).rejects.toThrow("files/worker.js could not be loaded");
    StubWorker.loads = true;
    await engine.load();
    expect(StubWorker.all.length).toBe(2);
  });
});

describe("the backlog", () => {
  it("bridges a short stall of the worker without losing a frame", () => {
    const backlog = new Backlog();
    for (let i = 0; i < 8; i++) {
      expect(backlog.accepts(33 * i)).toBe(true);
      backlog.sent(33 * i);
    }
    expect(backlog.accepts(33 * 8)).toBe(false); // the camera lends no more
    expect(backlog.busy(33 * 8)).toBe(false);
  });

  it("bounds the delay of a slow camera in time", () => {
    const backlog = new Backlog();
    backlog.sent(0);
    expect(backlog.accepts(499)).toBe(true);
    expect(backlog.accepts(501)).toBe(false);
  });

  it("tells that the computer is busy when frames are dropped, and forgets it", () => {
    const backlog = new Backlog();
    for (let i = 0; i < 60; i++) {
      if (backlog.accepts(33 * i)) backlog.sent(33 * i);
      if (i % 2) backlog.answered(); // half as fast as the camera
    }
    expect(backlog.busy(2000)).toBe(true);
    for (let i = 0; i < 400; i++) {
      if (backlog.accepts(2000 + 33 * i)) backlog.sent(2000 + 33 * i);
      while (backlog.length > 0) backlog.answered();
    }
    expect(backlog.busy(2000 + 33 * 400)).toBe(false);
  });

  it("tells a stall of the page, but not a hidden tab", () => {
    const backlog = new Backlog();
    backlog.tick(0, 250);
    backlog.tick(250, 250);
    expect(backlog.busy(260)).toBe(false);
    backlog.tick(null, 250);
    backlog.tick(60_000, 250);
    expect(backlog.busy(60_000)).toBe(false);
    backlog.tick(61_300, 250);
    expect(backlog.busy(61_300)).toBe(true);
    expect(backlog.busy(72_000)).toBe(false);
  });
});
