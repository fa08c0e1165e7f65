/** The elements of the page: shows readings and handles user input. */

import type { CameraChoice, Result } from "phase-rppg";
import { BreathingGuide } from "./breathing";
import type { Meter, MeterName, Meters } from "./coach";
import { Overlay } from "./overlay";
import { Plots } from "./plots";
import { Announcer, type PersonShown, type Shown } from "./readout";
import { element, report, summary } from "./report";
import { type Settings, storeSettings } from "./settings";
import { statistics } from "./statistics";
import { type Key, isLanguage, LANGUAGES, language, languageTag, percent, preferred, setLanguage, t, translate } from "./texts";
import type { Palette } from "./trendSvg";

const $ = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const METERS: readonly (readonly [MeterName, Key])[] = [["light", "coach.light"], ["distance", "coach.distance"], ["motion", "coach.motion"], ["speed", "coach.speed"]];
const OVER_VIDEO = { steady: "#4fe0a6", unsure: "#ffc56e", none: "#c3ccd6" };
const SWITCHES = [["mask", "mask"], ["everyone", "everyone"], ["details", "details"], ["shortcuts", "shortcuts"], ["keep-history", "history"]] as const;

const PALETTE: Palette = { line: "var(--pulse)", band: "var(--band)", mean: "var(--steady)", text: "var(--soft)", grid: "var(--line)" };

export type PageView = "idle" | "live" | "result";

export class View {
  readonly video = $<HTMLVideoElement>("video");
  readonly screen = $("screen");
  readonly start = $<HTMLButtonElement>("start");
  readonly open = $<HTMLButtonElement>("open");
  readonly file = $<HTMLInputElement>("file");
  readonly camera = $<HTMLSelectElement>("camera");
  readonly overlay = new Overlay($<HTMLCanvasElement>("overlay"));
  readonly plots: Plots;
  onSettings: (settings: Settings) => void = () => undefined;
  onChoose: (face: number) => void = () => undefined;
  onLanguage: () => void = () => undefined;
  private readonly announcer = new Announcer();
  private readonly breathing: BreathingGuide;
  private peopleKey = "";
  private drawSummary: () => void = () => undefined; // for another width

  constructor(public settings: Settings) {
    setLanguage(settings.language ?? preferred(navigator.languages ?? [navigator.language]));
    this.applyTheme();
    this.plots = new Plots({ wave: $("wave"), trend: $("trend"), spectrum: $("spectrum") });
    this.breathing = new BreathingGuide({ section: $("breathing"), circle: $("breath-circle"), steps: $("breath-steps"), word: $("breath-word"), rate: $<HTMLSelectElement>("breath-rate") });
    this.buildSettings();
    this.buildCoach();
    this.applyTexts();
    for (const query of ["(prefers-color-scheme: light)", "(forced-colors: active)"])
      matchMedia(query).addEventListener("change", () => this.repaint());
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => document.body.dataset.view === "result" && this.drawSummary());
    this.open.addEventListener("click", () => this.file.click());
    $("breathe").addEventListener("click", () => this.toggleBreathing());
  }

  /** Return the settings of the user with some of them changed. */
  change(changed: Partial<Settings>): void {
    this.settings = { ...this.settings, ...changed };
    storeSettings(this.settings);
    this.applyTheme();
    this.onSettings(this.settings);
  }

  show(shown: Shown): void {
    const reading = $("reading");
    reading.dataset.state = shown.state;
    reading.dataset.reason = shown.reason ?? "";
    write("state", shown.label);
    write("bpm", shown.bpm === null ? "––" : String(Math.round(shown.bpm)));
    $("bpm").hidden = shown.about !== null;
    $("about").hidden = shown.about === null;
    if (shown.about !== null) write("about", t(shown.state === "measuring" ? "about" : "probable", { bpm: Math.round(shown.about) }));
    write("interval", intervalText(shown));
    $("confidence").style.width = `${Math.round(100 * shown.share)}%`;
    write("guidance", shown.guidance);
    if (shown.bpm !== null) $("heart").style.setProperty("--beat", `${(60 / shown.bpm).toFixed(2)}s`);
    this.announce(this.announcer.update(shown, performance.now()));
  }

  announce(text: string | null): void {
    if (text !== null) write("announce", text);
  }

  /** The colour of a state over the video, where it is the same in light and dark. */
  stateColour(state: Shown["state"]): string {
    return state === "steady" ? OVER_VIDEO.steady : state === "unsure" || state === "measuring" ? OVER_VIDEO.unsure : OVER_VIDEO.none;
  }

  /** Show the meters of the picture; null hides them. */
  coach(meters: Meters | null): void {
    $("coach").hidden = meters === null;
    for (const [name] of METERS) if (meters) this.meter($(`coach-${name}`), meters[name]);
  }

  /** Show the people in view when there are several; one is shown large. */
  people(people: readonly PersonShown[], main: number | null, visibleCount: number): void {
    const several = people.length > 1;
    const onlyOne = visibleCount > people.length && people.length > 0;
    $("who").hidden = !several || main === null;
    if (main !== null) write("who", t("people.person", { number: main + 1 }));
    const key = JSON.stringify([language(), main, visibleCount, people.map(({ id, shown }) => [id, numberText(shown), shown.state])]);
    if (key === this.peopleKey) return;
    this.peopleKey = key;
    $("people").hidden = !several && !onlyOne;
    const note = onlyOne ? [element("p", [t("people.one-measured", { count: visibleCount })], "small")] : [];
    const focused = (document.activeElement as HTMLElement | null)?.dataset.face;
    $("people").replaceChildren(...(several ? people.map((person) => this.personButton(person, main)) : []), ...note);
    if (focused !== undefined) $("people").querySelector<HTMLElement>(`[data-face="${focused}"]`)?.focus();
  }

  facts(pace: { readonly fps: number; readonly tookMs: number; readonly networkMs: number } | null): void {
    const place = $("facts");
    place.dataset.fps = pace ? pace.fps.toFixed(1) : "";
    place.hidden = pace === null || !this.settings.details;
    if (pace) place.textContent = t("facts", { fps: pace.fps.toFixed(0), took: pace.tookMs.toFixed(0), network: pace.networkMs.toFixed(0) });
  }

  /** Show a frame of a file that is decoded and not played. */
  showPicture(picture: VideoFrame | ImageBitmap): void {
    const canvas = $<HTMLCanvasElement>("picture");
    const [width, height] = "displayWidth" in picture ? [picture.displayWidth, picture.displayHeight] : [picture.width, picture.height];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
  }

  running(kind: "camera" | "file" | null, decoded = false): void {
    $("picture").hidden = !decoded;
    this.video.hidden = decoded;
    this.screen.classList.toggle("mirrored", kind === "camera");
    this.open.disabled = kind !== null;
    this.camera.disabled = kind === "file";
    if (kind === null) {
      this.facts(null);
      this.coach(null);
      this.people([], null, 0);
      this.overlay.clear();
      this.progress(null);
    } else {
      this.turnTo("live");
      this.plots.clear();
    }
    this.labelStart();
  }

  /** Show what will happen, the measurement, or its result. */
  turnTo(view: PageView): void {
    document.body.dataset.view = view;
    $("empty").hidden = view !== "idle";
    $("summary").hidden = view !== "result";
    $("report").hidden = true;
    this.labelStart();
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

  /** Show the result of a measurement that has ended. */
  result(result: Result, kind: "camera" | "file", chosen: number | null, note: string | null): void {
    this.turnTo("result");
    write("summary-title", t(kind === "file" ? "summary.file" : "summary"));
    $("summary-note").hidden = note === null && result.warnings.length === 0;
    write("summary-note", [note, ...result.warnings.map((text) => t("report.warning", { text }))].filter((text) => text !== null).join(" "));
    this.drawSummary = () => $("summary-body").replaceChildren(...summary(result, chosen, PALETTE, Math.max(240, $("summary-body").clientWidth)));
    this.drawSummary();
    if (kind === "file") {
      $("report-body").replaceChildren(...report(result));
      $("report").hidden = false;
    }
  }

  /** Move the reading position to the result, and say it. */
  announceResult(result: Result, chosen: number | null): void {
    const face = result.faces.find(({ id }) => id === chosen) ?? result.faces[0];
    const numbers = face ? statistics(face) : null;
    $("summary").focus({ preventScroll: true });
    this.announce(numbers === null ? t("summary.none") : t("say.summary", { bpm: Math.round(numbers.medianBpm), low: Math.round(numbers.lowBpm), high: Math.round(numbers.highBpm) }));
    scrollTo({ top: 0 });
  }

  saved(text: string): void {
    write("saved", text);
  }

  /** Offer a new version of the page. */
  offerUpdate(reload: () => void): void {
    $("update").hidden = false;
    $("reload").onclick = reload;
  }

  /** Save a file on this device. */
  save(name: string, content: string | Blob, type: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  private personButton({ id, shown }: PersonShown, main: number | null): HTMLElement {
    const button = element("button", [element("span", [t("people.person", { number: id + 1 })]), " ", element("b", [numberText(shown) || "––"])]) as HTMLButtonElement;
    button.type = "button";
    button.dataset.face = String(id);
    button.dataset.state = shown.state;
    button.setAttribute("aria-pressed", String(id === main));
    button.addEventListener("click", () => this.onChoose(id));
    return button;
  }

  private buildCoach(): void {
    $("coach").replaceChildren(...METERS.map(([name, key]) => {
      const item = element("li", [element("i", [element("i")], "gauge"), element("span", [], "name"), element("span", [], "word")]);
      item.id = `coach-${name}`;
      (item.children[1] as HTMLElement).dataset.text = key;
      return item;
    }));
  }

  private meter(item: HTMLElement, { level, share, word }: Meter): void {
    if (item.dataset.level !== level) item.dataset.level = level;
    (item.firstElementChild!.firstElementChild as HTMLElement).style.width = `${Math.round(100 * share)}%`;
    const text = t(word);
    if (item.lastElementChild!.textContent !== text) item.lastElementChild!.textContent = text;
  }

  private buildSettings(): void {
    const [button, section] = [$("settings-button"), $("settings")];
    const open = (shown: boolean): void => {
      section.hidden = !shown;
      button.setAttribute("aria-expanded", String(shown));
    };
    button.addEventListener("click", () => open(section.hidden));
    section.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      open(false);
      button.focus();
    });
    const choice = $<HTMLSelectElement>("language");
    choice.replaceChildren(...Object.entries(LANGUAGES).map(([name, texts]) => new Option(texts.language, name, false, name === language())));
    for (const option of choice.options) option.lang = option.value;
    choice.addEventListener("change", () => {
      if (!isLanguage(choice.value)) return;
      setLanguage(choice.value);
      this.change({ language: choice.value });
      this.applyTexts();
      this.plots.paint();
      this.onLanguage();
    });
    const theme = $<HTMLSelectElement>("theme");
    theme.value = this.settings.theme;
    theme.addEventListener("change", () => this.change({ theme: theme.value as Settings["theme"] }));
    for (const [id, name] of SWITCHES) {
      const box = $<HTMLInputElement>(id);
      box.checked = this.settings[name];
      box.addEventListener("change", () => this.change({ [name]: box.checked }));
    }
  }

  private applyTexts(): void {
    document.documentElement.lang = languageTag();
    document.title = t("title");
    translate(document);
    this.labelStart();
    this.labelBreathing();
    this.peopleKey = "";
  }

  private labelStart(): void {
    const { view } = document.body.dataset;
    this.start.textContent = t(view === "live" ? "stop" : view === "result" ? "again" : "start");
  }

  private applyTheme(): void {
    const root = document.documentElement;
    if (this.settings.theme === "system") delete root.dataset.theme;
    else root.dataset.theme = this.settings.theme;
    document.body.classList.toggle("detailed", this.settings.details);
    this.repaint();
  }

  private repaint(): void {
    this.plots?.paint();
  }

  private toggleBreathing(): void {
    this.breathing.toggle();
    this.labelBreathing();
  }

  private labelBreathing(): void {
    const button = $("breathe");
    button.setAttribute("aria-expanded", String(this.breathing.shown));
    button.textContent = t(this.breathing.shown ? "breathing.hide" : "breathing.show");
  }

  /** Single keys act only if the user has not switched them off, and never while a field has the focus. */
  private key(event: KeyboardEvent): void {
    if (!this.settings.shortcuts || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLSelectElement || (event.target instanceof HTMLInputElement && event.target.type !== "checkbox")) return;
    const actions: Readonly<Record<string, HTMLElement>> = { s: this.start, o: this.open, m: $("mask"), d: $("details"), b: $("breathe") };
    actions[event.key.toLowerCase()]?.click();
  }
}

/** Write a text if it differs, so that nothing is drawn or announced again. */
function write(id: string, text: string): void {
  const place = $(id);
  if (place.textContent !== text) place.textContent = text;
}

function intervalText({ bpm, about, low, high, share, state }: Shown): string {
  if (bpm !== null && low !== null && high !== null) return t("interval", { low: Math.round(low), high: Math.round(high), percent: percent(share) });
  if (about === null) return "\u00a0";
  return state === "measuring" ? t("provisional.interval") : t("probable.interval", { percent: percent(share) });
}

/** The number at the box of a face: a reading, an estimate with its doubt, or nothing. */
export function numberText({ bpm, about, state }: Shown): string {
  if (bpm !== null) return String(Math.round(bpm));
  if (about === null) return "";
  return t(state === "measuring" ? "about" : "probable", { bpm: Math.round(about) });
}
