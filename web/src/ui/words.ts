/** What the page says: one short sentence per situation, with what to do. */

import type { Quality, Reason } from "../types";

export const ADVICE: Readonly<Record<Reason, string>> = {
  NO_FACE: "No face in view. Look at the camera.",
  FACE_LOST: "Your face was out of sight. Stay in the picture.",
  FACE_TOO_SMALL: "Come closer: your face is too small in the picture.",
  NO_PULSE: "No pulse that can be trusted. Hold still, in even light.",
  LIGHT_FLICKER: "The light changes at the same rate. Try daylight or a steadier lamp.",
  MOTION: "Hold still: your head moves at the same rate.",
  TOO_SHORT: "Too short. At least six seconds with a face are needed.",
  TOO_DARK: "More light on your face, please.",
  CLIPPED: "Too bright: turn away from the strong light.",
  LOW_FPS: "Too few frames per second. More light, or fewer other programs, may help.",
  BAD_TIMESTAMPS: "The video stumbled. Close other heavy programs or tabs.",
  NO_COLOUR: "The picture has no colour. Switch off infrared or black-and-white mode.",
};

/** A hint for a reading that could be better, or null. */
export function hint(quality: Quality): string | null {
  if (quality.luma < 60) return "A little more light would help.";
  if (quality.face_px < 70) return "Come a little closer.";
  if (quality.motion > 0.2) return "Hold still.";
  if (quality.clipped > 0.15) return "Turn a little away from the light.";
  if (quality.fps < 20) return "The camera is slow; more light often makes it faster.";
  return null;
}

export const clock = (seconds: number): string => {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};

/** A probability in words of a person: never 0 or 100 %. */
export function sureness(pOk: number): string {
  return `${Math.min(Math.max(Math.round(100 * pOk), 1), 99)} %`;
}
