/** The trend of a measurement as SVG text: the line with its band, and the mean. Used by the page and by saved files. */

import { condensed, type TrendPoint } from "./statistics";
import { clock } from "./texts";

export interface Palette {
  readonly line: string;
  readonly band: string;
  readonly mean: string;
  readonly text: string;
  readonly grid: string;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly fontPx: number;
}

const MIN_RANGE_BPM = 30; // a smaller range would exaggerate small changes
const STEPS_S = [5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];
const POINTS_PER_PX = 0.5;

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Return the range of the axis in steps of ten. */
export function rateRange(low: number, high: number): [number, number] {
  const middle = (low + high) / 2;
  const half = Math.max(MIN_RANGE_BPM / 2, (high - low) / 2 + 4);
  return [Math.floor((middle - half) / 10) * 10, Math.ceil((middle + half) / 10) * 10];
}

/** Return the content of an SVG element of this size, without the element. */
export function trendMarkup(points: readonly TrendPoint[], meanBpm: number | null, { width, height, fontPx }: Frame, palette: Palette): string {
  const shown = condensed(points, Math.max(20, Math.floor(width * POINTS_PER_PX)));
  const good = shown.filter((point) => point.bpm !== null);
  const [bottom, top] = good.length > 0 ? rateRange(Math.min(...good.map((p) => p.low!)), Math.max(...good.map((p) => p.high!))) : [50, 110];
  const firstS = shown[0]?.tS ?? 0;
  const spanS = Math.max(30, (shown[shown.length - 1]?.tS ?? 0) - firstS);
  const pad = { left: fontPx * 2.6, right: fontPx * 1.6, top: fontPx * 0.8, bottom: fontPx * 1.8 };
  const x = (tS: number): number => pad.left + ((tS - firstS) / spanS) * (width - pad.left - pad.right);
  const y = (bpm: number): number => pad.top + ((top - bpm) / (top - bottom)) * (height - pad.top - pad.bottom);
  const at = (tS: number, bpm: number): string => `${x(tS).toFixed(1)},${y(bpm).toFixed(1)}`;
  const parts: string[] = [];
  for (let bpm = bottom; bpm <= top; bpm += top - bottom > 60 ? 20 : 10)
    parts.push(gridLine(pad.left, width - pad.right, y(bpm), palette.grid), label(pad.left - fontPx * 0.5, y(bpm) + fontPx * 0.35, String(bpm), "end", fontPx, palette.text));
  const stepS = STEPS_S.find((step) => spanS / step <= Math.max(2, width / (fontPx * 7))) ?? STEPS_S[STEPS_S.length - 1];
  for (let tS = 0; tS <= spanS; tS += stepS) parts.push(label(x(firstS + tS), height - fontPx * 0.3, clock(tS), "middle", fontPx, palette.text));
  for (const run of runs(shown)) {
    const band = [...run.map((p) => at(p.tS, p.high!)), ...run.map((p) => at(p.tS, p.low!)).reverse()].join(" ");
    parts.push(`<polygon class="trend-band" points="${band}" fill="${palette.band}"/>`);
    if (run.length === 1) parts.push(`<circle class="trend-dot" cx="${x(run[0].tS).toFixed(1)}" cy="${y(run[0].bpm!).toFixed(1)}" r="${(fontPx / 5).toFixed(1)}" fill="${palette.line}"/>`);
    else parts.push(`<polyline class="trend-line" points="${run.map((p) => at(p.tS, p.bpm!)).join(" ")}" fill="none" stroke="${palette.line}" stroke-width="${(fontPx / 6).toFixed(1)}" stroke-linejoin="round"/>`);
  }
  if (meanBpm !== null)
    parts.push(`<line class="trend-mean" x1="${pad.left}" x2="${width - pad.right}" y1="${y(meanBpm).toFixed(1)}" y2="${y(meanBpm).toFixed(1)}" stroke="${palette.mean}" stroke-width="1.5" stroke-dasharray="6 5"/>`);
  return parts.join("");
}

/** Return the parts of the trend without a gap. */
function runs(points: readonly TrendPoint[]): TrendPoint[][] {
  const found: TrendPoint[][] = [[]];
  for (const point of points) {
    if (point.bpm === null) found.push([]);
    else found[found.length - 1].push(point);
  }
  return found.filter((run) => run.length > 0);
}

const gridLine = (x1: number, x2: number, y: number, colour: string): string =>
  `<line class="trend-grid" x1="${x1.toFixed(1)}" x2="${x2.toFixed(1)}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="${colour}"/>`;

const label = (x: number, y: number, text: string, anchor: string, fontPx: number, colour: string): string =>
  `<text class="trend-text" x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${fontPx}" text-anchor="${anchor}" fill="${colour}">${escapeXml(text)}</text>`;
