import { afterEach, describe, expect, it, vi } from "vitest";
import { CameraError, cameraProblem, listCameras, openCamera } from "../src/capture/camera.js";

afterEach(() => vi.unstubAllGlobals());

function browserWith(mediaDevices: unknown, isSecureContext = true): void {
  vi.stubGlobal("window", { isSecureContext });
  vi.stubGlobal("navigator", { mediaDevices });
}

describe("a camera that does not open", () => {
  it.each([
    ["NotAllowedError", "blocked"], ["NotFoundError", "No camera"], ["NotReadableError", "another program"],
    ["OverconstrainedError", "Choose another"], ["SomethingNew", "SomethingNew"],
  ])("says what to do: %s", (name, words) => {
    expect(cameraProblem(new DOMException("", name)).message).toContain(words);
  });

  it("becomes a CameraError", async () => {
    browserWith({ getUserMedia: () => Promise.reject(new DOMException("", "NotFoundError")) });
    await expect(openCamera()).rejects.toThrow(CameraError);
  });

  it("on an insecure page is explained before anything is asked", async () => {
    browserWith(undefined, false);
    await expect(openCamera()).rejects.toThrow(/https/);
  });
});

describe("the list of cameras", () => {
  it("names those without a name, and leaves out microphones", async () => {
    const devices = [
      { kind: "videoinput", deviceId: "a", label: "" },
      { kind: "audioinput", deviceId: "m", label: "Mic" },
      { kind: "videoinput", deviceId: "b", label: "Back" },
    ];
    browserWith({ enumerateDevices: () => Promise.resolve(devices) });
    expect(await listCameras()).toEqual([{ id: "a", label: "Camera 1" }, { id: "b", label: "Back" }]);
  });

  it("is empty in a browser without any", async () => {
    browserWith(undefined);
    expect(await listCameras()).toEqual([]);
  });
});
