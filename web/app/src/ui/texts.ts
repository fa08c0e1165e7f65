/** Texts of the page in the chosen language. English reasons and hints come from the file that Python reads, too. */

import { type Quality, type Reason, texts as shared } from "phase-rppg";
import de from "./languages/de.json";
import en from "./languages/en.json";
import es from "./languages/es.json";
import zh from "./languages/zh.json";

export type Key = keyof typeof en;
export type Language = "en" | "de" | "es" | "zh";
export type Values = Readonly<Record<string, string | number>>;

interface Hint {
  readonly quality: keyof Quality;
  readonly below?: number;
  readonly above?: number;
  readonly text: string;
}

export const HINTS = shared.hints as readonly Hint[];
export const STEADY: { readonly windows: number; readonly bpm: number } = shared.steady;

/** The shared English texts under the keys that a translation uses. */
const sharedEnglish: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(shared.reasons).map(([reason, { guidance }]) => [`reason.${reason}`, guidance])),
  ...Object.fromEntries(HINTS.map(({ quality, text }) => [`hint.${quality}`, text])),
  "guidance.steady": shared.steady.guidance,
  "guidance.unsure": shared.unsure.guidance,
  "guidance.measuring": shared.measuring.guidance,
  "guidance.busy": shared.busy.guidance,
};

export const LANGUAGES: Readonly<Record<Language, Readonly<Record<string, string>>>> = { en: { ...en, ...sharedEnglish }, de, es, zh };
const TAGS: Readonly<Record<Language, string>> = { en: "en", de: "de", es: "es", zh: "zh-Hans" };

let current: Language = "en";

export const isLanguage = (name: string): name is Language => Object.hasOwn(LANGUAGES, name);

/** Return the first language that both the browser and this page have. */
export function preferred(wanted: readonly string[]): Language {
  return wanted.map((tag) => tag.toLowerCase().split("-")[0]).find(isLanguage) ?? "en";
}

export function setLanguage(language: Language): void {
  current = language;
}

export const language = (): Language => current;

/** The language as the document and number formats name it. */
export const languageTag = (): string => TAGS[current];

function filled(text: string, values: Values): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** Return a text with its values. */
export const t = (key: Key, values: Values = {}): string => filled(LANGUAGES[current][key], values);

/** Return the advice for a person in front of the camera. */
export const guidance = (reason: Reason): string => LANGUAGES[current][`reason.${reason}`];

export const steadyGuidance = (): string => LANGUAGES[current]["guidance.steady"];
export const busyGuidance = (): string => LANGUAGES[current]["guidance.busy"];
export const settlingGuidance = (): string => LANGUAGES[current]["guidance.unsure"];

/** Return the guidance while the first window is not complete. */
export const measuringGuidance = (seconds: number): string => filled(LANGUAGES[current]["guidance.measuring"], { seconds });

/** Return a hint that could improve the reading, or null. */
export function hint(quality: Quality): string | null {
  const poor = HINTS.find(({ quality: name, below = -Infinity, above = Infinity }) => quality[name] < below || quality[name] > above);
  return poor ? LANGUAGES[current][`hint.${poor.quality}`] : null;
}

export const clock = (seconds: number): string => {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, String(whole % 60).padStart(2, "0")];
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
};

/** Format a probability; never 0 or 100 %. */
export function percent(pOk: number): string {
  return `${Math.min(Math.max(Math.round(100 * pOk), 1), 99)} %`;
}

export const date = (when: Date): string => when.toLocaleString(languageTag(), { dateStyle: "medium", timeStyle: "short" });

export const decimal = (value: number, digits = 1): string =>
  value.toLocaleString(languageTag(), { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Write the texts into the elements that name them: data-text, data-label (aria-label). */
export function translate(root: ParentNode): void {
  for (const element of root.querySelectorAll<HTMLElement>("[data-text]")) element.textContent = t(element.dataset.text as Key);
  for (const element of root.querySelectorAll<HTMLElement>("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label as Key));
}
