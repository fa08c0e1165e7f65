/** Files of a finished measurement, made in this page: a picture and a self-contained HTML document. */

import type { FaceResult, Result } from "phase-rppg";
import { direction, mainReason, type Statistics, statistics, trendOf } from "./statistics";
import { clock, date, decimal, guidance, type Key, languageTag, percent, t } from "./texts";
import { escapeXml, type Palette, trendMarkup } from "./trendSvg";

const CARD = { width: 1200, height: 720 };
const PAPER: Palette = { line: "#d2343f", band: "#d2343f2e", mean: "#0b7f56", text: "#5b6570", grid: "#dfdbd3" };
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

/** One line of a result: its name and its value. */
export type Fact = readonly [name: Key, value: string];

/** Return the lines of a result in the words of the page; the same everywhere. */
export function factsOf(face: FaceResult, numbers: Statistics, durationS: number): Fact[] {
  const { lowBpm, highBpm, meanBpm, slopeBpmPerMin, measuredS, grade } = numbers;
  const facts: Fact[] = [
    ["summary.range", `${Math.round(lowBpm)}–${Math.round(highBpm)}`],
    ["summary.mean", decimal(meanBpm)],
    ["summary.measured", t("summary.of", { part: clock(measuredS), whole: clock(Math.max(durationS, measuredS)) })],
    ["summary.quality", t(`summary.quality.${grade}`)],
  ];
  if (slopeBpmPerMin !== null)
    facts.push(["summary.direction", t(`summary.direction.${direction(slopeBpmPerMin)}`, { change: decimal(Math.abs(slopeBpmPerMin)) })]);
  if (face.hrv?.breaths_per_minute != null) facts.push(["summary.breaths", decimal(face.hrv.breaths_per_minute)]);
  return facts;
}

/** Return why there is no number. */
export function noReadingText(face: FaceResult | undefined): string {
  const reason = face ? mainReason(face.windows) : "NO_FACE";
  return reason === null || reason === "TOO_SHORT" ? t("summary.short") : t("summary.none.text", { reason: guidance(reason) });
}

/** Return the picture of a result as SVG text. */
export function cardSvg(result: Result, face: FaceResult, when: Date): string | null {
  const numbers = statistics(face);
  if (numbers === null) return null;
  const text = (x: number, y: number, sizePx: number, content: string, colour = "#1c2127", weight = 400, anchor = "start"): string =>
    `<text x="${x}" y="${y}" font-size="${sizePx}" font-weight="${weight}" text-anchor="${anchor}" fill="${colour}">${escapeXml(content)}</text>`;
  const facts = factsOf(face, numbers, result.durationS).slice(0, 5);
  const median = String(Math.round(numbers.medianBpm));
  const rows = facts.map(([name, value], i) => text(620, 168 + 54 * i, 24, t(name), "#5b6570") + text(1140, 168 + 54 * i, 26, value, "#1c2127", 600, "end"));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${CARD.width}" height="${CARD.height}" viewBox="0 0 ${CARD.width} ${CARD.height}" font-family="${FONT}">`,
    `<rect width="100%" height="100%" fill="#f4f2ee"/><rect x="28" y="28" width="1144" height="664" rx="28" fill="#fff" stroke="#dfdbd3"/>`,
    `<path d="M62 88h14l8-24 13 44 10-32 6 12h16" fill="none" stroke="#d2343f" stroke-width="5" stroke-linecap="round" stroke-linejoin="round"/>`,
    text(146, 98, 30, "phase live", "#1c2127", 600), text(1140, 98, 24, date(when), "#5b6570", 400, "end"),
    text(60, 290, 190, median, "#1c2127", 680), text(80 + 124 * median.length, 290, 34, t("bpm"), "#5b6570"),
    text(64, 350, 26, t("summary.median"), "#5b6570"),
    ...rows,
    `<g transform="translate(48 410)">${trendMarkup(trendOf(face.windows), numbers.meanBpm, { width: 1104, height: 220, fontPx: 20 }, PAPER)}</g>`,
    text(60, 668, 20, `${t("summary.medical")} · ${result.video} · ${result.method}`, "#5b6570"),
    "</svg>",
  ].join("");
}

/** Return the picture of a result as PNG; the SVG is drawn on a canvas of this page. */
export async function cardPng(svg: string): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [CARD.width, CARD.height];
    canvas.getContext("2d")!.drawImage(image, 0, 0);
    return await new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error(t("save.failed")))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Return a self-contained HTML document of a result: no script, no picture from elsewhere. */
export function cardHtml(result: Result, when: Date): string {
  const several = result.faces.length > 1;
  const faces = result.faces.length > 0 ? result.faces.map((face) => faceHtml(result, face, several)).join("") : `<p>${escapeXml(noReadingText(undefined))}</p>`;
  const warnings = result.warnings.map((text) => `<p>${escapeXml(t("report.warning", { text }))}</p>`).join("");
  return `<!doctype html>
<html lang="${languageTag()}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>phase live · ${escapeXml(date(when))}</title>
<style>
body { font: 16px/1.5 ${FONT}; color: #1c2127; background: #f4f2ee; max-width: 820px; margin: 24px auto; padding: 0 16px; }
section { background: #fff; border: 1px solid #dfdbd3; border-radius: 16px; padding: 20px 26px; margin: 16px 0; }
h1 { font-size: 1.3rem; } .number { font-size: 4.5rem; font-weight: 680; line-height: 1; margin: 0; } .number small { font-size: 1.2rem; color: #5b6570; font-weight: 400; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px 20px; } dt { color: #5b6570; font-size: 0.85rem; } dd { margin: 0; font-weight: 600; }
svg { width: 100%; height: auto; } p { margin: 6px 0; } footer { color: #5b6570; font-size: 0.85rem; }
</style></head><body><main><h1>phase live · ${escapeXml(result.video)} · ${escapeXml(date(when))}</h1>
${warnings}${faces}</main>
<footer><p>${escapeXml(t("summary.made", { date: date(when) }))} ${escapeXml(t("summary.medical"))}</p><p>${escapeXml(result.method)}</p></footer></body></html>
`;
}

function faceHtml(result: Result, face: FaceResult, several: boolean): string {
  const numbers = statistics(face);
  const name = several ? `<h2>${escapeXml(t("people.person", { number: face.id + 1 }))}</h2>` : "";
  if (numbers === null) return `<section>${name}<p><b>${escapeXml(t("summary.none"))}</b></p><p>${escapeXml(noReadingText(face))}</p></section>`;
  const facts = factsOf(face, numbers, result.durationS).map(([key, value]) => `<div><dt>${escapeXml(t(key))}</dt><dd>${escapeXml(value)}</dd></div>`).join("");
  const label = trendLabel(numbers);
  const frame = { width: 760, height: 220, fontPx: 13 };
  const quality = t("summary.quality.text", { share: percent(numbers.shownShare), percent: percent(numbers.pOk) });
  return `<section>${name}<p class="number">${Math.round(numbers.medianBpm)} <small>${escapeXml(t("bpm"))}</small></p><p>${escapeXml(t("summary.median"))}</p>
<dl>${facts}</dl>
<svg viewBox="0 0 ${frame.width} ${frame.height}" role="img" aria-label="${escapeXml(label)}" font-family="${FONT}">${trendMarkup(trendOf(face.windows), numbers.meanBpm, frame, PAPER)}</svg>
<p>${escapeXml(quality)}</p></section>`;
}

export const trendLabel = ({ medianBpm, lowBpm, highBpm }: Statistics): string =>
  t("summary.trend.label", { median: Math.round(medianBpm), low: Math.round(lowBpm), high: Math.round(highBpm) });
