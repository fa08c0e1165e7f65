/** The three plots, by uPlot, in the colours of the page. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { GRID_BPM } from "../signal/rateTracking";
import { isEstimate, type Waveform } from "../types";
import type { WindowResult } from "../session/results";
import { clock } from "./words";

const TREND_POINTS = 1800; // half an hour at one window per second
const WAVE_S = 8;

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Plots {
  private wave: uPlot | null = null;
  private trend: uPlot | null = null;
  private spectrum: uPlot | null = null;
  private trendData: [number[], (number | null)[], (number | null)[], (number | null)[]] = [[], [], [], []];
  private startS: number | null = null;
  private peakBpm: number | null = null;
  private readonly watcher: ResizeObserver;

  constructor(private readonly places: { wave: HTMLElement; trend: HTMLElement; spectrum: HTMLElement }) {
    this.paint();
    this.watcher = new ResizeObserver(() => this.fit());
    Object.values(places).forEach((place) => this.watcher.observe(place));
  }

  /** Draw everything anew, for another theme. */
  paint(): void {
    const kept = { wave: this.wave?.data, spectrum: this.spectrum?.data };
    [this.wave, this.trend, this.spectrum].forEach((plot) => plot?.destroy());
    this.wave = this.make(this.places.wave, {
      scales: { x: { time: false, range: [-WAVE_S, 0] }, y: { range: [-1.15, 1.15] } },
      axes: [{ ...this.axis((v) => (v === 0 ? "now" : `−${-v} s`)), incrs: [1, 2] }, { show: false }],
      series: [{}, { stroke: colour("--pulse"), width: 2.2, spanGaps: false, points: { show: false } }],
    }, kept.wave ?? [[-WAVE_S, 0], [null, null]]);
    this.trend = this.make(this.places.trend, {
      scales: { x: { time: false, range: (_u, low, high) => [low ?? 0, Math.max(high ?? 0, (low ?? 0) + 60)] }, y: { range: trendRange } },
      axes: [{ ...this.axis(clock), incrs: [10, 30, 60, 120, 300, 600] }, { ...this.axis((v) => String(v), 34), incrs: [10, 20, 50] }],
      series: [{}, { points: { show: false }, stroke: "transparent" }, { points: { show: false }, stroke: "transparent" },
        { stroke: colour("--pulse"), width: 2, spanGaps: false, points: { show: true, size: 5, fill: colour("--pulse"), stroke: colour("--pulse") } }],
      bands: [{ series: [2, 1], fill: `color-mix(in srgb, ${colour("--pulse")} 18%, transparent)` }],
    }, this.trendData);
    this.spectrum = this.make(this.places.spectrum, {
      scales: { x: { time: false, range: [40, 200] }, y: { range: [0, 1.08] } },
      axes: [{ ...this.axis((v) => `${v}`), incrs: [20, 40] }, { show: false }],
      series: [{}, { stroke: colour("--soft"), width: 1.5, fill: `color-mix(in srgb, ${colour("--soft")} 22%, transparent)`, points: { show: false } }],
      hooks: { draw: [(plot) => this.markPeak(plot)] },
    }, kept.spectrum ?? [[40, 200], [null, null]]);
  }

  showWave({ values, valid }: Waveform): void {
    let top = 1e-9;
    values.forEach((value, i) => valid[i] && (top = Math.max(top, Math.abs(value))));
    const x = Array.from(values, (_, i) => ((i - values.length + 1) / values.length) * WAVE_S);
    this.wave?.setData([x, Array.from(values, (value, i) => (valid[i] ? value / top : null))]);
  }

  showRate({ endS, reading }: WindowResult): void {
    this.startS ??= endS;
    const [x, low, high, bpm] = this.trendData;
    const at = endS - this.startS;
    const good = isEstimate(reading) ? reading : null;
    if (x.length > 0 && at - x[x.length - 1] > 2.5) this.push(x[x.length - 1] + 1, null, null, null); // a gap stays a gap
    this.push(at, good?.low ?? null, good?.high ?? null, good?.bpm ?? null);
    if (x.length > TREND_POINTS) [x, low, high, bpm].forEach((column) => column.splice(0, column.length - TREND_POINTS));
    this.trend?.setData(this.trendData);
  }

  showSpectrum({ reading, spectrum }: WindowResult): void {
    this.peakBpm = isEstimate(reading) ? reading.bpm : null;
    const top = Math.max(1e-12, ...spectrum);
    this.spectrum?.setData([Array.from(GRID_BPM), spectrum.map((power) => power / top)]);
  }

  clear(): void {
    this.startS = this.peakBpm = null;
    this.trendData = [[], [], [], []];
    this.clearNow();
    this.trend?.setData(this.trendData);
  }

  /** The face went: what was shown of the present is no longer true. */
  clearNow(): void {
    this.peakBpm = null;
    this.wave?.setData([[-WAVE_S, 0], [null, null]]);
    this.spectrum?.setData([[40, 200], [null, null]]);
  }

  private push(x: number, low: number | null, high: number | null, bpm: number | null): void {
    [x, low, high, bpm].forEach((value, i) => (this.trendData[i] as (number | null)[]).push(value));
  }

  private make(place: HTMLElement, options: Partial<uPlot.Options>, data: uPlot.AlignedData): uPlot {
    const size = { width: place.clientWidth || 300, height: place.clientHeight || 160 };
    return new uPlot({ ...size, cursor: { show: false }, legend: { show: false }, series: [{}], ...options, padding: [8, 22, 0, 14] }, data, place);
  }

  private axis(words: (value: number) => string, size = 28): uPlot.Axis {
    return {
      stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, size,
      font: "12px system-ui, sans-serif", values: (_plot, values) => values.map(words),
    };
  }

  private markPeak(plot: uPlot): void {
    if (this.peakBpm === null) return;
    const x = plot.valToPos(this.peakBpm, "x", true);
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--pulse");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = this.peakBpm > 160 ? "right" : "left";
    ctx.fillText(`${Math.round(this.peakBpm)} bpm`, x + (this.peakBpm > 160 ? -6 : 6) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    ctx.restore();
  }

  private fit(): void {
    (["wave", "trend", "spectrum"] as const).forEach((name) => {
      const { clientWidth: width, clientHeight: height } = this.places[name];
      if (width > 0 && height > 0) this[name]?.setSize({ width, height });
    });
  }
}

/** At least 30 bpm high, in steps of ten, so that a quiet heart looks quiet. */
function trendRange(_plot: uPlot, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [50, 110];
  const middle = (low + high) / 2;
  const half = Math.max(15, (high - low) / 2 + 4);
  return [Math.floor((middle - half) / 10) * 10, Math.ceil((middle + half) / 10) * 10];
}
