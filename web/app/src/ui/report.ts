/** The results of a measurement as elements of the page: the summary, and the windows for those who want details. */

import { type FaceResult, isEstimate, type Result } from "phase-rppg";
import { factsOf, noReadingText, trendLabel } from "./share";
import { type Statistics, statistics, trendOf } from "./statistics";
import { clock, decimal, guidance, type Key, percent, t } from "./texts";
import { type Palette, trendMarkup } from "./trendSvg";

type Child = Node | string;
const RMSSD_S = 30; // clear beats that RMSSD and breathing need
const SDNN_S = 60;

export function element(tag: string, children: readonly Child[] = [], className = ""): HTMLElement {
  const made = document.createElement(tag);
  made.append(...children);
  if (className) made.className = className;
  return made;
}

export const definitions = (facts: readonly (readonly [string, string])[]): HTMLElement =>
  element("dl", facts.map(([name, value]) => element("div", [element("dt", [name]), element("dd", [value])])));

/** Build the summary of all faces, the chosen one first. */
export function summary(result: Result, chosen: number | null, palette: Palette, widthPx: number): HTMLElement[] {
  const faces = [...result.faces].sort((a, b) => Number(b.id === chosen) - Number(a.id === chosen));
  if (faces.length === 0) return [noReading(undefined)];
  return faces.flatMap((face) => faceSummary(result, face, faces.length > 1, (numbers) => trend(face, numbers, palette, widthPx)));
}

const noReading = (face: FaceResult | undefined): HTMLElement =>
  element("div", [element("p", [t("summary.none")], "none"), element("p", [noReadingText(face)])], "outcome");

function faceSummary(result: Result, face: FaceResult, named: boolean, draw: (numbers: Statistics) => HTMLElement): HTMLElement[] {
  const heading = named ? [element("h3", [t("people.person", { number: face.id + 1 })])] : [];
  const numbers = statistics(face);
  if (numbers === null) return [...heading, noReading(face)];
  const big = element("div", [
    element("p", [element("b", [String(Math.round(numbers.medianBpm))]), " ", element("small", [t("bpm")])], "big"),
    element("p", [t("summary.median")], "small"),
  ]);
  const facts = definitions(factsOf(face, numbers, result.durationS).map(([name, value]) => [t(name), value]));
  const quality = t("summary.quality.text", { share: percent(numbers.shownShare), percent: percent(numbers.pOk) });
  return [...heading, element("div", [big, facts], "outcome"), draw(numbers), element("p", [quality], "small"), variability(face)];
}

function trend(face: FaceResult, numbers: Statistics, palette: Palette, widthPx: number): HTMLElement {
  const frame = { width: widthPx, height: Math.round(Math.min(240, Math.max(140, widthPx / 3))), fontPx: 13 };
  const markup = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${frame.width} ${frame.height}" role="img">${trendMarkup(trendOf(face.windows), numbers.meanBpm, frame, palette)}</svg>`;
  const svg = document.importNode(new DOMParser().parseFromString(markup, "image/svg+xml").documentElement, true);
  svg.setAttribute("aria-label", trendLabel(numbers));
  return element("div", [svg], "trend");
}

/** Variability and breathing, each with the reason if it is not shown. */
function variability(face: FaceResult): HTMLElement {
  const { hrv } = face;
  const beatsS = hrv?.duration_s ?? (face.beatsS.length > 1 ? face.beatsS[face.beatsS.length - 1] - face.beatsS[0] : 0);
  const value = (found: number | null | undefined, unit: string, neededS: number, otherwise: Key): string => {
    if (found !== null && found !== undefined) return `${decimal(found, found < 20 ? 1 : 0)} ${unit}`.trim();
    return beatsS < neededS ? t("summary.hrv.none", { seconds: neededS, found: Math.floor(beatsS) }) : t(otherwise);
  };
  return element("div", [
    element("h3", [t("summary.hrv")]),
    definitions([
      [t("summary.rmssd"), value(hrv?.rmssd_ms, "ms", RMSSD_S, "summary.hrv.noisy")],
      [t("summary.sdnn"), value(hrv?.sdnn_ms, "ms", SDNN_S, "summary.hrv.noisy")],
      [t("summary.breaths"), value(hrv?.breaths_per_minute, "", RMSSD_S, "summary.hrv.breath")],
    ]),
  ], "detail variability");
}

/** Build the report of a video: every face with all its windows. */
export function report(result: Result): HTMLElement[] {
  const title = element("p", [`${result.video} · ${clock(result.durationS)} · ${result.method}`]);
  const warnings = result.warnings.map((text) => element("p", [t("report.warning", { text })]));
  if (result.faces.length === 0) return [title, ...warnings, element("p", [t("report.no-reading", { reason: guidance("NO_FACE") })], "summary-line")];
  return [title, ...warnings, ...result.faces.flatMap((face) => faceReport(face, result.faces.length > 1))];
}

function faceReport(face: FaceResult, named: boolean): HTMLElement[] {
  const { summary: reading } = face;
  const head = isEstimate(reading)
    ? [element("b", [reading.bpm.toFixed(1)]), ` ${t("report.reading", { low: reading.low.toFixed(0), high: reading.high.toFixed(0), percent: percent(reading.pOk) })}`]
    : [t("report.no-reading", { reason: guidance(reading.reason) })];
  const shown = face.windows.filter((window) => isEstimate(window.reading)).length;
  const facts: [string, string][] = [
    [t("report.windows"), t("summary.of", { part: shown, whole: face.windows.length })],
    [t("report.visible"), clock(face.seenS)],
  ];
  if (face.beatsS.length > 0) facts.push([t("report.beats"), String(face.beatsS.length)]);
  const heading = named ? [element("h3", [t("people.person", { number: face.id + 1 })])] : [];
  return [...heading, element("p", head, "summary-line"), definitions(facts), windowTable(face)];
}

function windowTable(face: FaceResult): HTMLElement {
  const rows = face.windows.map(({ startS, endS, reading, peak }) => element("tr", [
    element("td", [`${clock(startS)}–${clock(endS)}`]),
    element("td", [isEstimate(reading) ? reading.bpm.toFixed(1) : "–"]),
    element("td", [percent(reading.pOk)]),
    element("td", [peak ? `${peak.snrDb.toFixed(1)} dB` : "–"]),
    element("td", [isEstimate(reading) ? "" : guidance(reading.reason)]),
  ]));
  const names = [t("report.window"), t("bpm"), t("report.sure"), t("report.snr"), t("report.reason")];
  const shown = scrollable(table(names, rows), t("report.table"));
  shown.classList.add("detail");
  return shown;
}

export function table(names: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  const cells = names.map((name) => {
    const cell = element("th", [name]);
    cell.setAttribute("scope", "col");
    return cell;
  });
  return element("table", [element("thead", [element("tr", cells)]), element("tbody", rows)]);
}

/** A region that scrolls by keyboard. */
export function scrollable(content: HTMLElement, label: string): HTMLElement {
  const region = element("div", [content], "scroll");
  region.tabIndex = 0;
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", label);
  return region;
}
