/** The texts of the page; Python reads the same file. */

import texts from "../../../src/phase_rppg/session/reasons.json";
import type { Quality, Reason } from "../types";

interface Hint {
  readonly quality: keyof Quality;
  readonly below?: number;
  readonly above?: number;
  readonly text: string;
}

/** What to tell a person in front of the camera, for each reason. */
export const GUIDANCE = Object.fromEntries(
  Object.entries(texts.reasons).map(([reason, { guidance }]) => [reason, guidance]),
) as Readonly<Record<Reason, string>>;
export const STEADY = texts.steady;
export const UNSURE = texts.unsure;

/** A hint for a reading that could be better, or null. */
export function hint(quality: Quality): string | null {
  const poor = (texts.hints as readonly Hint[]).find(({ quality: name, below = -Infinity, above = Infinity }) =>
    quality[name] < below || quality[name] > above);
  return poor?.text ?? null;
}

export const clock = (seconds: number): string => {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};

/** A probability in words of a person: never 0 or 100 %. */
export function sureness(pOk: number): string {
  return `${Math.min(Math.max(Math.round(100 * pOk), 1), 99)} %`;
}
