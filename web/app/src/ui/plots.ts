/** The three plots of a running measurement, drawn with uPlot. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { findBeats, GRID_BPM, isEstimate, type Waveform, type WindowResult } from "phase-rppg";
import { condensed, type TrendPoint, trendOf } from "./statistics";
import { clock, t } from "./texts";
import { rateRange } from "./trendSvg";

const TREND_POINTS = 400; // a longer trend is averaged to as many points
const WAVE_S = 8;
const UNTRUSTED_HEIGHT = 0.25; // of a waveform without a reading, relative to a trusted one
const BEAT_PX = 3.5;

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colour of a waveform: grey without a reading, else the more vivid the more probable the reading is. */
function waveColour(trust: number): string {
  return trust <= 0 ? colour("--soft") : `color-mix(in srgb, ${colour("--pulse")} ${Math.round(100 * trust)}%, ${colour("--soft")})`;
}

export class Plots {
  private wave: uPlot | null = null;
  private trend: uPlot | null = null;
  private spectrum: uPlot | null = null;
  private points: TrendPoint[] = []; // of the face that is shown
  private peakBpm: number | null = null;
  private trust = 0; // 0–1, of the drawn waveform
  private beats: readonly (readonly [number, number])[] = []; // x, y in the scales of the waveform
  private readonly resizeObserver: ResizeObserver;

  constructor(private readonly places: { wave: HTMLElement; trend: HTMLElement; spectrum: HTMLElement }) {
    this.paint();
    this.resizeObserver = new ResizeObserver(() => this.fit());
    Object.values(places).forEach((place) => this.resizeObserver.observe(place));
  }

  /** Redraw all plots, for another theme or language. */
  paint(): void {
    const kept = { wave: this.wave?.data, spectrum: this.spectrum?.data };
    [this.wave, this.trend, this.spectrum].forEach((plot) => plot?.destroy());
    this.wave = this.make(this.places.wave, {
      scales: { x: { time: false, range: [-WAVE_S, 0] }, y: { range: [-1.15, 1.15] } },
      axes: [{ ...this.axis((v) => (v === 0 ? t("wave.now") : `−${-v} s`)), incrs: [1, 2] }, { show: false }],
      series: [{}, { stroke: () => waveColour(this.trust), width: 2.2, spanGaps: false, points: { show: false } }],
      hooks: { draw: [(plot) => this.markBeats(plot)] },
    }, kept.wave ?? [[-WAVE_S, 0], [null, null]]);
    this.trend = this.make(this.places.trend, {
      scales: { x: { time: false, range: (_u, low, high) => [low ?? 0, Math.max(high ?? 0, (low ?? 0) + 60)] }, y: { range: (_u, low, high) => (low === null || high === null ? [50, 110] : rateRange(low, high)) } },
      axes: [{ ...this.axis(clock), incrs: [10, 30, 60, 120, 300, 600, 1800, 3600] }, { ...this.axis((v) => String(v), 34), incrs: [10, 20, 50] }],
      series: [{}, { points: { show: false }, stroke: "transparent" }, { points: { show: false }, stroke: "transparent" },
        { stroke: colour("--pulse"), width: 2, spanGaps: false, points: { show: true, size: 5, fill: colour("--pulse"), stroke: colour("--pulse"), filter: lonely } }],
      bands: [{ series: [2, 1], fill: `color-mix(in srgb, ${colour("--pulse")} 22%, transparent)` }],
    }, this.trendData());
    this.spectrum = this.make(this.places.spectrum, {
      scales: { x: { time: false, range: [40, 200] }, y: { range: [0, 1.08] } },
      axes: [{ ...this.axis((v) => `${v}`), incrs: [20, 40] }, { show: false }],
      series: [{}, { stroke: colour("--soft"), width: 1.5, fill: `color-mix(in srgb, ${colour("--soft")} 22%, transparent)`, points: { show: false } }],
      hooks: { draw: [(plot) => this.markPeak(plot)] },
    }, kept.spectrum ?? [[40, 200], [null, null]]);
  }

  /** Draw the waveform. Without a reading (`bpm` null) it is small, grey and without beats, because it may be noise. */
  showWave(wave: Waveform, bpm: number | null, pOk: number): void {
    const { values, valid, fps, startS } = wave;
    this.trust = bpm === null ? 0 : pOk;
    const height = UNTRUSTED_HEIGHT + (1 - UNTRUSTED_HEIGHT) * this.trust;
    let top = 1e-9;
    values.forEach((value, i) => valid[i] && (top = Math.max(top, Math.abs(value))));
    const at = (i: number): number => ((i - values.length + 1) / values.length) * WAVE_S;
    const drawn = Array.from(values, (value, i) => (valid[i] ? (height * value) / top : null));
    const indices = bpm === null ? [] : findBeats(wave, bpm).map((tS) => Math.round((tS - startS) * fps));
    this.beats = indices.flatMap((i) => (drawn[i] === null || drawn[i] === undefined ? [] : [[at(i), drawn[i]] as const]));
    this.wave?.setData([Array.from(values, (_, i) => at(i)), drawn]);
  }

  /** Draw the trend of a face, from its windows. */
  showTrend(windows: readonly WindowResult[]): void {
    this.points = trendOf(windows);
    this.trend?.setData(this.trendData());
  }

  showSpectrum({ reading, spectrum }: WindowResult): void {
    this.peakBpm = isEstimate(reading) ? reading.bpm : null;
    const top = Math.max(1e-12, ...spectrum);
    this.spectrum?.setData([Array.from(GRID_BPM), spectrum.map((power) => power / top)]);
  }

  clear(): void {
    this.points = [];
    this.clearNow();
    this.trend?.setData(this.trendData());
  }

  /** Clear the current waveform and spectrum, because the face has left. */
  clearNow(): void {
    this.peakBpm = null;
    this.beats = [];
    this.wave?.setData([[-WAVE_S, 0], [null, null]]);
    this.spectrum?.setData([[40, 200], [null, null]]);
  }

  private trendData(): uPlot.AlignedData {
    const shown = condensed(this.points, TREND_POINTS);
    const startS = this.points[0]?.tS ?? 0;
    return [shown.map((p) => p.tS - startS), shown.map((p) => p.low), shown.map((p) => p.high), shown.map((p) => p.bpm)];
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

  private markBeats(plot: uPlot): void {
    const { ctx } = plot;
    ctx.save();
    ctx.fillStyle = waveColour(this.trust);
    for (const [x, y] of this.beats) {
      ctx.beginPath();
      ctx.arc(plot.valToPos(x, "x", true), plot.valToPos(y, "y", true), BEAT_PX * devicePixelRatio, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.restore();
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
    ctx.fillText(`${Math.round(this.peakBpm)} ${t("bpm")}`, x + (this.peakBpm > 160 ? -6 : 6) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    ctx.restore();
  }

  private fit(): void {
    (["wave", "trend", "spectrum"] as const).forEach((name) => {
      const { clientWidth: width, clientHeight: height } = this.places[name];
      if (width > 0 && height > 0) this[name]?.setSize({ width, height });
    });
  }
}

/** Return the readings without a neighbour: a line would not show them. */
function lonely(plot: uPlot, index: number, show: boolean): number[] {
  const values = plot.data[index];
  const empty = (i: number): boolean => values[i] === null || values[i] === undefined;
  const found = show ? Array.from(values, (_, i) => i).filter((i) => !empty(i) && empty(i - 1) && empty(i + 1)) : [];
  return found; // null would show all points
}
