/** Everything a session keeps about one face: the last window of its signals; the twin of session/face_state.py. */

import { toBytes } from "../face/crop";
import type { Track } from "../face/tracker";
import * as chrom from "../methods/chrom";
import { deviation } from "../methods/common";
import * as pos from "../methods/pos";
import { any, median, sum } from "../signal/arrays";
import { bandpass } from "../signal/filters";
import { withoutMotion } from "../signal/motionRemoval";
import { jointBpm, spectralPeak, spectrum } from "../signal/rate";
import { bridge } from "../signal/resample";
import { GRID_BPM, RateTracker } from "../signal/rateTracking";
import type { Picture, RgbTrace, Waveform } from "../types";
import { assess, type Window } from "./windowQuality";
import { type Clock, History, type Step } from "./clock";
import type { SessionConfig } from "./config";
import { gate } from "./gate";
import { COLUMNS, SkinSampler } from "./skinSampler";
import type { PulseModel } from "./pulseModel";
import type { WavePiece, WindowResult } from "./results";

// Columns of the history: what the skin sampler gives, the background, and the wave as sum and weight.
const X = COLUMNS.indexOf("x");
const FACE_PX = COLUMNS.indexOf("face_px");
const CLIPPED = COLUMNS.indexOf("clipped");
const BACKGROUND = COLUMNS.length;
const WAVE = COLUMNS.length + 3;
const WEIGHT = COLUMNS.length + 4;
const WIDTH = COLUMNS.length + 5;
const NO_PICTURE = new Float32Array(0);
const BATCH = 6; // pictures that a network gets at once
const SHORTEST_WAVE_S = 2; // less of a face than this in a window gives no wave
const PREVIEW_HZ = [0.6, 4] as const; // what is shown of the wave
const METHODS: Record<string, { extract(trace: RgbTrace): Waveform }> = { pos, chrom };

/** One face of a session. */
export class FaceState {
  announced = false;
  windows = 0;
  sampler: SkinSampler;
  private readonly history: History;
  private readonly rates = new RateTracker();
  private readonly ownRates = new RateTracker(); // without the second method
  private sureS: number | null = null; // end of the last window that was sure
  private emitted: number; // ticks of the wave that were handed out
  private before: { row: number[]; picture: Float32Array } | null = null; // of the frame before
  private model: PulseModel | null;
  private toSkip: number;
  private fed = false; // whether the network has a past
  private pending: Uint8Array[] = []; // pictures that wait for the network
  private pendingFirst: number;

  constructor(
    readonly track: Track, frame: Picture, private readonly clock: Clock, firstTick: number, private readonly config: SessionConfig,
  ) {
    this.sampler = new SkinSampler(track, frame, config.cropPx);
    this.history = new History(WIDTH, config.keepTicks, firstTick);
    this.emitted = this.pendingFirst = firstTick;
    this.model = config.model?.fresh() ?? null;
    this.toSkip = this.model?.delayFrames ?? 0;
  }

  /** What counted in the newest picture: the network's own mask, or the skin. */
  get attention(): { readonly side: number; readonly weights: Float32Array } {
    return this.model?.attention ?? { side: this.sampler.size, weights: this.sampler.skin };
  }

  get firstTick(): number {
    return this.history.start;
  }

  /** Start anew at the place where the face was found again. */
  jump(frame: Picture): void {
    this.sampler = new SkinSampler(this.track, frame, this.config.cropPx);
  }

  /** Take in a frame in which the face is present. */
  async frame(frame: Picture, tS: number, step: Step, background: readonly number[] | null): Promise<void> {
    const row = [...this.sampler.measure(frame, tS), ...(background ?? [-1, -1, -1]), 0, 0];
    const now = { row, picture: this.model ? this.sampler.cut(frame) : NO_PICTURE };
    const before = this.before ?? now;
    for (const share of step.shares) this.history.append(row.map((value, i) => before.row[i] + share * (value - before.row[i])), step.seen);
    for (let i = 0; this.model && i < step.shares.length; i++) {
      await this.picture(step.first + i, toBytes(blend(before.picture, now.picture, step.shares[i])), step.seen);
    }
    this.before = now;
  }

  /** Take in a frame without the face. */
  async absent(step: Step): Promise<void> {
    for (let i = 0; i < step.shares.length; i++) this.history.append(new Float64Array(WIDTH), false);
    this.before = null;
    if (step.shares.length > 0) await this.forgetPictures();
  }

  /** The face has been gone since `seenS`: what was measured after that was not the face. */
  lose(seenS: number): void {
    this.history.forgetAfter(Math.floor((seenS - this.clock.originS) * this.clock.fps + 1e-6));
    this.sureS = null; // whoever comes back has to show a pulse anew
  }

  /** The result of the window of ticks first … stop−1, if the face was seen in it. */
  async window(first: number, stop: number): Promise<WindowResult[]> {
    await this.runModel();
    const { rows, seen } = this.history.window(first, stop);
    if (!any(seen) || !this.track.confirmed) return [];
    const { fps } = this.clock;
    const startS = this.clock.timeS(first);
    const endS = this.clock.timeS(stop);
    const pick = (from: number, count: number): Float64Array => columns(rows, from, count);
    const skin: RgbTrace = { values: pick(0, 3), fps, startS, valid: seen };
    const centre = pick(X, 2);
    const wave = withoutMotion(this.wave(rows, skin, first), centre);
    const lit = seen.map((flag, i) => (flag && [0, 1, 2].every((c) => rows[i * WIDTH + BACKGROUND + c] >= 0) ? 1 : 0));
    const pace = this.clock.pace(startS, endS);
    const ofSeen = (column: number): Float64Array => pick(column, 1).filter((_, i) => seen[i]);
    const known: Window = {
      wave,
      skin,
      background: any(lit) ? { values: pick(BACKGROUND, 3), fps, startS, valid: lit } : null,
      centre,
      method: this.config.method,
      coverage: sum(seen) / seen.length,
      facePx: median(ofSeen(FACE_PX)),
      clipped: sum(ofSeen(CLIPPED)) / sum(seen),
      fps: pace.fps,
      maxGapS: pace.maxGapS,
    };
    const waves = [wave, ...(this.config.second ? [withoutMotion(this.extract("pos", skin), centre)] : [])].filter((one) => any(one.valid));
    // One heart: both waves speak for one path and one number. Whether to believe it is asked of the wave and its own path:
    // a lamp or a step is in both waves, so that they agree is no proof of a heart.
    const tracked = waves.length > 0 ? this.rates.update(waves.map((one) => spectrum(one)), endS) : null;
    const { peak: own, quality: seenQuality } = assess(known, tracked);
    const spec = spectrum(wave);
    let quality = seenQuality;
    if (own && tracked && waves.length > 1) {
      this.ownRates.update([spec], endS);
      quality = { ...quality, support: this.ownRates.support(tracked.bpm) };
    }
    const peaks = waves.flatMap((one) => spectralPeak(one, tracked?.bpm) ?? []);
    const peak = own && { ...own, bpm: jointBpm(peaks) };
    const reading = gate(peak, quality, startS, endS, this.config.calibration, this.config.gated, this.sureS);
    if (reading.pOk >= this.config.calibration.threshold) this.sureS = endS;
    this.windows += 1;
    const shown = Array.from(GRID_BPM, (bpm) => spec.at(bpm / 60));
    return [{ kind: "window", face: this.track.id, startS, endS, reading, peak, quality, spectrum: shown }];
  }

  /** The wave that a method finds in the skin's colour. */
  private extract(method: string, skin: RgbTrace): Waveform {
    const count = skin.valid.length;
    if (sum(skin.valid) < SHORTEST_WAVE_S * skin.fps) return { ...skin, values: new Float64Array(count), valid: new Uint8Array(count) };
    return METHODS[method].extract(skin);
  }

  /** Let the whole wave reach the last tick, which the last window may have missed. */
  async completeWave(first: number, stop: number): Promise<void> {
    await this.runModel();
    const { rows, seen } = this.history.window(first, stop);
    this.wave(rows, { values: columns(rows, 0, 3), fps: this.clock.fps, startS: this.clock.timeS(first), valid: seen }, first);
  }

  /** The wave up to tick `stop`, as far as it was not handed out yet. */
  piece(stop: number): WavePiece[] {
    const first = Math.max(this.emitted, this.history.start);
    const last = Math.min(stop, this.history.stop);
    if (last <= first) return [];
    this.emitted = last;
    return [{ kind: "wave", face: this.track.id, wave: this.known(first, last) }];
  }

  /** The newest seconds of the wave as far as they are known now, for the eye; later windows may refine them. */
  preview(seconds: number): Waveform {
    const wave = this.newest(seconds);
    if (!any(wave.valid)) return wave;
    return { ...wave, values: bandpass(bridge(wave.values, wave.valid), wave.fps, PREVIEW_HZ[0], Math.min(PREVIEW_HZ[1], 0.45 * wave.fps)) };
  }

  private newest(seconds: number): Waveform {
    const last = this.history.stop;
    const first = last - Math.round(seconds * this.clock.fps);
    if (this.model) return this.known(first, last);
    const { rows, seen } = this.history.window(first, last);
    const skin = { values: columns(rows, 0, 3), fps: this.clock.fps, startS: this.clock.timeS(first), valid: seen };
    return this.extract(this.config.method, skin);
  }

  /** Make a network answer for the last pictures, by repeating the last one for as long as its delay. */
  async flush(): Promise<void> {
    if (!this.model || !this.model.delayFrames || !this.before) return;
    await this.runModel();
    this.pendingFirst = this.history.stop;
    this.pending = Array<Uint8Array>(this.model.delayFrames).fill(toBytes(this.before.picture));
    await this.runModel();
  }

  private known(first: number, last: number): Waveform {
    const { rows, seen } = this.history.window(first, last);
    const valid = seen.map((flag, i) => (flag && rows[i * WIDTH + WEIGHT] > 0 ? 1 : 0));
    const values = Float64Array.from(valid, (flag, i) => (flag ? rows[i * WIDTH + WAVE] / rows[i * WIDTH + WEIGHT] : 0));
    return { values, fps: this.clock.fps, startS: this.clock.timeS(first), valid };
  }

  /** The wave of the window, from the network or the method; the whole wave is the sum of its windows. */
  private wave(rows: Float64Array, skin: RgbTrace, first: number): Waveform {
    const count = skin.valid.length;
    if (this.model) {
      const valid = skin.valid.map((flag, i) => (flag && rows[i * WIDTH + WEIGHT] > 0 ? 1 : 0));
      return { ...skin, values: columns(rows, WAVE, 1).map((value, i) => (valid[i] ? value : 0)), valid };
    }
    const wave = this.extract(this.config.method, skin);
    const spread = any(wave.valid) ? deviation(wave.values.filter((_, i) => wave.valid[i])) : 0;
    if (spread > 0) {
      const fade = Float64Array.from(wave.values, (_, i) => Math.sin((Math.PI * (i + 0.5)) / count) ** 2 + 1e-3);
      this.history.add(first, fade.map((f, i) => (f * wave.values[i]) / spread), WAVE);
      this.history.add(first, fade, WEIGHT);
    }
    return wave;
  }

  private async picture(tick: number, picture: Uint8Array, seen: boolean): Promise<void> {
    if (!seen) return this.forgetPictures();
    if (this.pending.length === 0) this.pendingFirst = tick;
    this.pending.push(picture);
    this.fed = true;
    if (this.pending.length >= BATCH) await this.runModel();
  }

  /** After a pause the network begins anew. */
  private async forgetPictures(): Promise<void> {
    if (!this.model || !this.config.model || !this.fed) return;
    await this.runModel();
    this.model = this.config.model.fresh();
    this.fed = false;
    this.toSkip = this.model.delayFrames;
  }

  /** Feed the pictures that wait. */
  private async runModel(): Promise<void> {
    if (!this.model || this.pending.length === 0) return;
    const values = await this.model.step(this.pending);
    this.pending = [];
    const first = this.pendingFirst - this.model.delayFrames;
    const skip = Math.min(this.toSkip, values.length); // answers for pictures from before the beginning
    this.toSkip -= skip;
    this.history.add(first + skip, values.subarray(skip), WAVE);
    this.history.add(first + skip, new Float64Array(values.length - skip).fill(1), WEIGHT);
  }
}

/** A picture between two others, at `share` of the way. */
function blend(before: Float32Array, now: Float32Array, share: number): Float32Array {
  const out = new Float32Array(now.length);
  for (let i = 0; i < out.length; i++) out[i] = before[i] + share * (now[i] - before[i]);
  return out;
}

/** Columns from … from+count−1 of rows (T,WIDTH) as (T,count). */
function columns(rows: Float64Array, from: number, count: number): Float64Array {
  const out = new Float64Array((rows.length / WIDTH) * count);
  for (let i = 0; i < out.length; i++) out[i] = rows[Math.floor(i / count) * WIDTH + from + (i % count)];
  return out;
}
