/** The document: finds its elements, shows what it is told, and reports what the person does. */

import type { Result } from "../session/document";
import type { CameraChoice } from "../capture/camera";
import { Overlay } from "./overlay";
import { Plots } from "./plots";
import { type Shown, spoken } from "./readout";
import { report } from "./report";
import { sureness } from "./words";

const $ = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

export class View {
  readonly video = $<HTMLVideoElement>("video");
  readonly screen = $("screen");
  readonly start = $<HTMLButtonElement>("start");
  readonly open = $<HTMLButtonElement>("open");
  readonly file = $<HTMLInputElement>("file");
  readonly camera = $<HTMLSelectElement>("camera");
  readonly mask = $<HTMLInputElement>("mask");
  readonly csv = $<HTMLButtonElement>("csv");
  readonly json = $<HTMLButtonElement>("json");
  readonly overlay = new Overlay($<HTMLCanvasElement>("overlay"));
  readonly plots = new Plots({ wave: $("wave"), trend: $("trend"), spectrum: $("spectrum") });
  private announced = "";

  constructor() {
    $("theme").addEventListener("click", () => this.switchTheme());
    matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => this.plots.paint());
    document.addEventListener("keydown", (event) => this.key(event));
    this.open.addEventListener("click", () => this.file.click());
  }

  show(shown: Shown): void {
    const reading = $("reading");
    reading.dataset.state = shown.state;
    reading.dataset.reason = shown.reason ?? "";
    $("state").textContent = shown.label;
    $("bpm").textContent = shown.bpm === null ? "––" : String(Math.round(shown.bpm));
    $("interval").textContent = shown.low === null || shown.high === null ? "\u00a0"
      : `between ${Math.round(shown.low)} and ${Math.round(shown.high)} · ${sureness(shown.share)} sure`;
    $("confidence").style.width = `${Math.round(100 * shown.share)}%`;
    $("guidance").textContent = shown.guidance;
    if (shown.bpm !== null) $("heart").style.setProperty("--beat", `${(60 / shown.bpm).toFixed(2)}s`);
    const words = spoken(shown);
    if (words !== this.announced) $("announce").textContent = this.announced = words;
  }

  tone(state: Shown["state"]): string {
    const name = state === "steady" ? "--steady" : state === "unsure" || state === "measuring" ? "--unsure" : "--none";
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  facts(pace: { readonly fps: number; readonly tookMs: number; readonly networkMs: number } | null): void {
    $("facts").textContent = pace ? `${pace.fps.toFixed(0)} fps · ${pace.tookMs.toFixed(0)} ms per frame (network ${pace.networkMs.toFixed(0)})` : "";
  }

  running(kind: "camera" | "file" | null): void {
    $("empty").hidden = kind !== null;
    this.screen.classList.toggle("mirrored", kind === "camera");
    this.start.textContent = kind ? "Stop" : "Start camera";
    this.open.disabled = kind !== null;
    this.camera.disabled = kind === "file";
    if (kind === null) {
      this.facts(null);
      this.overlay.clear();
      this.progress(null);
    } else {
      $("report").hidden = true;
      this.plots.clear();
    }
  }

  progress(share: number | null): void {
    const bar = $("progress");
    bar.hidden = share === null;
    bar.setAttribute("aria-valuenow", String(Math.round(100 * (share ?? 0))));
    (bar.firstElementChild as HTMLElement).style.width = `${100 * (share ?? 0)}%`;
  }

  cameras(choices: readonly CameraChoice[], current: string): void {
    $("cameras").hidden = choices.length < 2;
    this.camera.replaceChildren(...choices.map(({ id, label }) => new Option(label, id, false, id === current)));
  }

  about(text: string): void {
    $("network").textContent = text;
  }

  canSave(count: number): void {
    this.csv.disabled = this.json.disabled = count === 0;
    $("saved").textContent = count === 0 ? "The numbers of a session are kept in this tab until you close it."
      : `${count} ${count === 1 ? "window" : "windows"} measured, kept in this tab only. Save them:`;
  }

  report(result: Result): void {
    $("report-body").replaceChildren(...report(result));
    $("report").hidden = false;
  }

  /** Offer a text as a file; it never leaves the device. */
  save(name: string, text: string, type: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  private switchTheme(): void {
    const root = document.documentElement;
    const light = root.dataset.theme ? root.dataset.theme === "light" : matchMedia("(prefers-color-scheme: light)").matches;
    root.dataset.theme = light ? "dark" : "light";
    this.plots.paint();
  }

  private key(event: KeyboardEvent): void {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement) return;
    const action = { s: this.start, o: this.open, m: this.mask }[event.key.toLowerCase()];
    action?.click();
  }
}
