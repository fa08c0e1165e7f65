/** A guide for paced breathing: a circle that grows and shrinks, or steps for readers who prefer no motion. */

import { t } from "./texts";

export const RATES = [4, 5, 6, 7, 8, 10, 12] as const; // breaths per minute
export const DEFAULT_RATE = 6;
const IN_SHARE = 0.4; // of a breath; breathing out takes longer
const STEP_COUNT = 6;

export interface Phase {
  readonly part: "in" | "out";
  readonly fullness: number; // 0–1
  readonly step: number; // 0 … STEP_COUNT, filled steps
}

/** Return the phase at a time since the start. */
export function phaseAt(tS: number, breathsPerMinute: number): Phase {
  const share = ((tS * breathsPerMinute) / 60) % 1;
  const part = share < IN_SHARE ? "in" : "out";
  const within = part === "in" ? share / IN_SHARE : (share - IN_SHARE) / (1 - IN_SHARE);
  const filled = part === "in" ? within : 1 - within;
  return { part, fullness: (1 - Math.cos(Math.PI * filled)) / 2, step: part === "in" ? Math.floor(filled * STEP_COUNT) + 1 : Math.ceil(filled * STEP_COUNT) };
}

export class BreathingGuide {
  private handle = 0;
  private startedMs = 0;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly places: { section: HTMLElement; circle: HTMLElement; steps: HTMLElement; word: HTMLElement; rate: HTMLSelectElement }) {
    places.steps.replaceChildren(...Array.from({ length: STEP_COUNT }, () => document.createElement("i")));
    places.rate.replaceChildren(...RATES.map((rate) => new Option(String(rate), String(rate), false, rate === DEFAULT_RATE)));
    places.rate.addEventListener("change", () => { this.startedMs = performance.now(); });
  }

  get shown(): boolean {
    return !this.places.section.hidden;
  }

  toggle(): boolean {
    this.places.section.hidden = this.shown;
    cancelAnimationFrame(this.handle);
    if (this.shown) {
      this.startedMs = performance.now();
      this.draw();
    }
    return this.shown;
  }

  private readonly draw = (): void => {
    const { circle, steps, word, rate } = this.places;
    const { part, fullness, step } = phaseAt((performance.now() - this.startedMs) / 1000, Number(rate.value));
    const text = t(part === "in" ? "breathing.in" : "breathing.out");
    if (word.textContent !== text) word.textContent = text;
    circle.hidden = this.still.matches;
    steps.hidden = !this.still.matches;
    if (this.still.matches) [...steps.children].forEach((one, i) => one.classList.toggle("on", i < step));
    else circle.style.transform = `scale(${(0.35 + 0.65 * fullness).toFixed(3)})`;
    this.handle = requestAnimationFrame(this.draw);
  };
}
