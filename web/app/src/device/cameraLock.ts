/** Keeps exposure and white balance of a camera fixed while measuring, where the browser allows it. */

import type { Meters } from "../ui/coach";

const SETTLE_S = 2; // of a face in good light, before the camera is fixed
const MODES = [
  { mode: "exposureMode", value: "exposureTime" },
  { mode: "whiteBalanceMode", value: "colorTemperature" },
] as const;

/** Names of the image capture specification that the DOM library does not have. */
type Loose = Record<string, unknown>;

/** Locks a camera once its light is good, and frees it if the light becomes bad. */
export class CameraLock {
  locked = false;
  private goodSinceS: number | null = null;
  private busy = false;

  constructor(private readonly track: MediaStreamTrack) {}

  /** Process the meters of a frame. */
  update(tS: number, { light }: Meters): void {
    if (light.level === "unknown") this.goodSinceS = null; // nobody is there: the light may change with the next person
    else if (light.level === "bad") {
      this.goodSinceS = null;
      if (this.locked) void this.set(false);
    } else {
      this.goodSinceS ??= tS;
      if (!this.locked && tS - this.goodSinceS >= SETTLE_S) void this.set(true);
    }
  }

  /** Fix or free every mode that the camera has. */
  private async set(locked: boolean): Promise<void> {
    if (this.busy || this.track.readyState !== "live") return;
    this.busy = true;
    try {
      const able = (this.track.getCapabilities?.() ?? {}) as Loose;
      const now = this.track.getSettings() as Loose;
      const has = (mode: string, wanted: string): boolean => Array.isArray(able[mode]) && (able[mode] as string[]).includes(wanted);
      const wanted: Loose = {};
      for (const { mode, value } of MODES) {
        if (locked && has(mode, "manual")) Object.assign(wanted, { [mode]: "manual" }, now[value] === undefined ? {} : { [value]: now[value] });
        if (!locked && has(mode, "continuous")) wanted[mode] = "continuous";
      }
      if (Object.keys(wanted).length > 0) await this.track.applyConstraints({ advanced: [wanted as MediaTrackConstraintSet] });
      this.locked = locked && Object.keys(wanted).length > 0;
      if (locked && !this.locked) this.goodSinceS = Infinity; // this camera cannot be fixed: do not ask again
    } catch {
      this.goodSinceS = Infinity; // the camera refused
    } finally {
      this.busy = false;
    }
  }
}
