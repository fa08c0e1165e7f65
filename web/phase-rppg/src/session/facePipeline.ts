/** The measurement of one face: sampler, buffers, network and window analysis; a port of session/face_pipeline.py. */

import type { Track } from "../face/tracker.js";
import { any } from "../signal/arrays.js";
import { bandpass } from "../signal/filters.js";
import { interpolateInvalid } from "../signal/resample.js";
import type { Picture, Reading, Waveform } from "../types.js";
import type { Clock, Step } from "./clock.js";
import type { SessionConfig } from "./config.js";
import { FaceState } from "./faceState.js";
import { NetworkFeeder } from "./networkFeeder.js";
import type { WavePiece, WindowResult } from "./results.js";
import { SkinSampler } from "./skinSampler.js";
import { extract, WindowAnalyzer } from "./windowAnalyzer.js";

const MIN_PROVISIONAL_S = 6; // shortest part that the gate accepts
const PREVIEW_HZ = [0.6, 4] as const; // band of the displayed waveform

/** Turns the frames of one track into windows and pieces of the waveform. */
export class FacePipeline {
  announced = false; // whether the session has reported the face
  windowCount = 0;
  sampler: SkinSampler;
  readonly state: FaceState;
  readonly network: NetworkFeeder | null;
  private readonly analyzer: WindowAnalyzer;

  constructor(readonly track: Track, frame: Picture, clock: Clock, firstTick: number, private readonly config: SessionConfig) {
    this.sampler = new SkinSampler(track, frame, config.cropPx);
    const state = (this.state = new FaceState(clock, firstTick, config));
    this.network = config.model && new NetworkFeeder(config.model, firstTick, (first, values) =>
      state.addWave(first, values, new Float64Array(values.length).fill(1)), config.batch);
    this.analyzer = new WindowAnalyzer(config);
  }

  /** The network's attention mask of the last frame, or the skin weights. */
  get attention(): { readonly side: number; readonly weights: Float32Array } {
    return this.network?.model.attention ?? { side: this.sampler.size, weights: this.sampler.mask };
  }

  /** Sample a frame in which the face is present. */
  async pushFrame(frame: Picture, tS: number, step: Step, background: readonly number[] | null): Promise<void> {
    const sample = this.sampler.sample(frame, tS);
    const crops = this.state.append(step, sample, background, this.network && this.sampler.crop(frame));
    for (let i = 0; this.network && i < crops.length; i++) {
      if (step.seen) await this.network.push(step.first + i, crops[i]);
      else await this.network.restart();
    }
  }

  /** Record a frame in which the face is absent. */
  async pushAbsence(step: Step): Promise<void> {
    this.state.appendAbsence(step);
    if (step.weights.length > 0) await this.network?.restart();
  }

  /** Discard the samples after `seenS`, when the face was seen for the last time. */
  markLost(seenS: number): void {
    this.state.invalidateAfter(seenS);
    this.analyzer.recordLoss(seenS);
  }

  /** Sample the face at a new position, without continuity to the old one. */
  restartSampler(frame: Picture): void {
    this.sampler = new SkinSampler(this.track, frame, this.config.cropPx);
  }

  /** Return the result of the window of ticks first … stop−1, if the face was seen in it. */
  async analyzeWindow(first: number, stop: number): Promise<WindowResult[]> {
    await this.network?.run();
    const samples = this.state.samples(first, stop);
    if (samples.coverage <= 0 || !this.track.confirmed) return [];
    const wave = this.analyzer.extractWave(samples);
    if (!this.network) this.state.overlapAdd(first, wave);
    const reach = this.config.contextTicks;
    const context = reach > 0 ? this.state.context(first, stop, reach) : null;
    this.windowCount += 1;
    return [this.analyzer.analyze(this.track.id, samples, wave, context)];
  }

  /** Extend the waveform to the last tick, which may be later than the last window. */
  async completeWave(first: number, stop: number): Promise<void> {
    await this.network?.run();
    if (!this.network) this.state.overlapAdd(first, this.analyzer.extractWave(this.state.samples(first, stop)));
  }

  /** Return the waveform before tick `stop` that was not returned yet. */
  nextWave(stop: number): WavePiece[] {
    const wave = this.state.nextWave(stop);
    return wave ? [{ kind: "wave", face: this.track.id, wave }] : [];
  }

  /** Complete the output of a delayed network for the last crops. */
  async flushNetwork(): Promise<void> {
    const crop = this.state.lastCrop;
    if (this.network && crop) await this.network.flush(crop, this.state.stopTick);
  }

  /**
   * Return a reading of the seconds since the face appeared, before its first window is complete; null before
   * `MIN_PROVISIONAL_S`. It has an analyzer of its own, so that no later window depends on it.
   */
  async provisionalReading(): Promise<Reading | null> {
    const { fps } = this.state.clock;
    const stop = this.state.stopTick - this.config.delayTicks;
    const { skin } = this.state.samples(stop - this.config.windowTicks, stop);
    const seen = skin.valid.length - 1 - skin.valid.lastIndexOf(0); // ticks without a gap
    if (seen >= this.config.windowTicks || seen < MIN_PROVISIONAL_S * fps) return null;
    await this.network?.run();
    const samples = this.state.samples(stop - seen, stop);
    const analyzer = new WindowAnalyzer(this.config);
    return analyzer.analyze(this.track.id, samples, analyzer.extractWave(samples)).reading;
  }

  /** Return the last seconds of the waveform for display; later windows may change them. */
  preview(seconds: number): Waveform {
    const stop = this.state.stopTick;
    const first = stop - Math.round(seconds * this.state.clock.fps);
    const wave = this.network ? this.state.wave(first, stop) : extract(this.config.method, this.state.samples(first, stop).skin);
    if (!any(wave.valid)) return wave;
    const highHz = Math.min(PREVIEW_HZ[1], 0.45 * wave.fps);
    return { ...wave, values: bandpass(interpolateInvalid(wave.values, wave.valid), wave.fps, PREVIEW_HZ[0], highHz) };
  }
}
