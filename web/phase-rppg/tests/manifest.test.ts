import { describe, expect, it } from "vitest";
import { verify } from "../src/infer/files.js";
import { readManifest } from "../src/infer/manifest.js";

const good = {
  format: 1, name: "n", file: "n.onnx", sha256: "0".repeat(64), fps: 30, size: 36, delay_frames: 2,
  states: { a: [1, 4] }, mask: [1, 4, 4], parameters: 9, citation: "",
};

describe("a manifest", () => {
  it("is accepted", () => expect(readManifest(good, "m")).toEqual(good));

  it.each([
    null, [], { ...good, format: 2 }, { ...good, file: "../n.onnx" }, { ...good, file: 3 }, { ...good, sha256: "abc" },
    { ...good, size: 0 }, { ...good, fps: "30" }, { ...good, delay_frames: -1 }, { ...good, states: { a: [1, "4"] } }, { ...good, mask: undefined },
  ].map((data) => [JSON.stringify(data), data]))("is refused: %s", (_text, data) => {
    expect(() => readManifest(data, "models/infer/n.json")).toThrow("models/infer/n.json");
  });
});

describe("a shared file", () => {
  const data = new TextEncoder().encode("abc");
  it("with the right hash is accepted", () => verify("f", data, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  it("with another hash is refused", () => expect(verify("f", data, "0".repeat(64))).rejects.toThrow(/damaged/));
  it("that is not listed is refused", () => expect(verify("f", data, undefined)).rejects.toThrow(/damaged/));
});
