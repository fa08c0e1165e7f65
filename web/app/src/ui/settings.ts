/** What the user has chosen; kept in this browser. A browser that stores nothing uses the defaults. */

import type { Language } from "./texts";

export type Theme = "system" | "light" | "dark";

export interface Settings {
  readonly language: Language | null; // null: as the browser
  readonly theme: Theme;
  readonly mask: boolean;
  readonly everyone: boolean;
  readonly details: boolean;
  readonly shortcuts: boolean;
  readonly history: boolean;
}

const KEY = "phase-live";
export const DEFAULTS: Settings = { language: null, theme: "system", mask: true, everyone: true, details: false, shortcuts: true, history: false };

/** Return stored settings; unknown or malformed ones have their default. */
export function parse(stored: string | null): Settings {
  try {
    const found: unknown = JSON.parse(stored ?? "{}");
    if (typeof found !== "object" || found === null) return DEFAULTS;
    const known = Object.entries(found).filter(([name, value]) => {
      if (!Object.hasOwn(DEFAULTS, name)) return false;
      if (name === "language") return ["en", "de", "es", "zh"].includes(value as string);
      if (name === "theme") return ["system", "light", "dark"].includes(value as string);
      return typeof value === "boolean";
    });
    return { ...DEFAULTS, ...Object.fromEntries(known) };
  } catch {
    return DEFAULTS;
  }
}

export function loadSettings(): Settings {
  try {
    return parse(localStorage.getItem(KEY));
  } catch {
    return DEFAULTS; // storage is blocked
  }
}

export function storeSettings(settings: Settings): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // Storage is blocked: the choice holds until the page is closed.
  }
}
