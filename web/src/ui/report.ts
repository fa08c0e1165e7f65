/** The report of a dropped video, as elements of the page. */

import type { Result } from "../session/document";
import type { FaceResult } from "../session/offline";
import { isEstimate } from "../types";
import { GUIDANCE, clock, sureness } from "./words";

type Child = Node | string;

function element(tag: string, children: readonly Child[] = [], className = ""): HTMLElement {
  const made = document.createElement(tag);
  made.append(...children);
  if (className) made.className = className;
  return made;
}

/** Everything that was found in one video. */
export function report(result: Result): HTMLElement[] {
  const title = element("p", [`${result.video} · ${clock(result.durationS)} · ${result.method}`]);
  const warnings = result.warnings.map((warning) => element("p", [`Careful: ${warning}.`]));
  if (result.faces.length === 0) return [title, ...warnings, element("p", [`No reading: ${GUIDANCE.NO_FACE}`], "summary")];
  return [title, ...warnings, ...result.faces.flatMap((face) => faceReport(face, result.faces.length > 1))];
}

function faceReport(face: FaceResult, named: boolean): HTMLElement[] {
  const { summary } = face;
  const head = isEstimate(summary)
    ? [element("b", [summary.bpm.toFixed(1)]), ` bpm (${summary.low.toFixed(0)}–${summary.high.toFixed(0)}), ${sureness(summary.pOk)} sure to be within 5 bpm`]
    : [`No reading: ${GUIDANCE[summary.reason]}`];
  const shown = face.windows.filter((window) => isEstimate(window.reading)).length;
  const facts: [string, string | null][] = [
    ["windows with a reading", `${shown} of ${face.windows.length}`],
    ["face in view", clock(face.seenS)],
    ["beats", face.beatsS.length > 0 ? String(face.beatsS.length) : null],
    ["RMSSD", unit(face.hrv?.rmssd_ms, "ms")],
    ["SDNN", unit(face.hrv?.sdnn_ms, "ms")],
    ["breaths per minute", unit(face.hrv?.breaths_per_minute, "")],
  ];
  const list = element("dl", facts.filter(([, value]) => value !== null).map(([name, value]) => element("div", [element("dt", [name]), element("dd", [value!])])));
  const rows = face.windows.map(({ startS, endS, reading, peak }) => element("tr", [
    element("td", [`${clock(startS)}–${clock(endS)}`]),
    element("td", [isEstimate(reading) ? reading.bpm.toFixed(1) : "–"]),
    element("td", [sureness(reading.pOk)]),
    element("td", [peak ? `${peak.snrDb.toFixed(1)} dB` : "–"]),
    element("td", [isEstimate(reading) ? "" : GUIDANCE[reading.reason]]),
  ]));
  const header = element("tr", ["window", "bpm", "sure", "SNR", "why not"].map(heading));
  const table = element("div", [element("table", [element("thead", [header]), element("tbody", rows)])], "scroll");
  table.tabIndex = 0; // scrolls by keyboard
  table.setAttribute("role", "region");
  table.setAttribute("aria-label", "Readings of all windows");
  return [...(named ? [element("h3", [`Face ${face.id + 1}`])] : []), element("p", head, "summary"), list, table];
}

function heading(name: string): HTMLElement {
  const cell = element("th", [name]);
  cell.setAttribute("scope", "col");
  return cell;
}

const unit = (value: number | null | undefined, name: string): string | null =>
  value === null || value === undefined ? null : `${value.toFixed(value < 20 ? 1 : 0)} ${name}`.trim();
