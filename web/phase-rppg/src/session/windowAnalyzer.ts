/** Waveform, heart rate, quality and reading of the windows of one face; a port of session/window_analyzer.py. */

import { reference } from "../data.js";
import * as chrom from "../methods/chrom.js";
import * as pos from "../methods/pos.js";
import { any, sum } from "../signal/arrays.js";
import { removeMotion } from "../signal/motionRemoval.js";
import { jointBpm, spectralPeak, type Spectrum, spectrum } from "../signal/rate.js";
import { GRID_BPM, RateTracker, type TrackedRate } from "../signal/rateTracking.js";
import type { RgbTrace, Waveform } from "../types.js";
import type { SessionConfig } from "./config.js";
import { Gate } from "./gate.js";
import type { WindowResult } from "./results.js";
import { assess } from "./windowQuality.js";
import type { WindowContext, WindowSamples } from "./windowSamples.js";

// Weight of the context relative to the window, and the extra seconds with a face that give the full weight.
const CONTEXT_WEIGHT = reference.window_analyzer.CONTEXT_WEIGHT;
const CONTEXT_FULL_S = reference.window_analyzer.CONTEXT_FULL_S;
const MIN_WAVE_S = reference.window_analyzer.MIN_WAVE_S; // a method gets no window with less of the face
export const METHODS: Record<string, { extract(trace: RgbTrace): Waveform }> = { pos, chrom };

/** Analyses the windows of one face in order of time. */
export class WindowAnalyzer {
  private readonly rates = new RateTracker();
  private readonly networkRates = new RateTracker(); // for the waveform of the network alone
  private readonly gate: Gate;

  constructor(private readonly config: SessionConfig) {
    this.gate = new Gate(config.calibration, config.gated);
  }

  /** Record that the face was lost at `tS`. */
  recordLoss(tS: number): void {
    this.gate.recordLoss(tS);
  }

  /** Return the waveform: the output of the network, or what the method extracts from the samples. */
  extractWave(samples: WindowSamples): Waveform {
    return this.config.model && samples.wave ? samples.wave : extract(this.config.method, samples.skin);
  }

  /**
   * Return the result of the next window; `wave` is its `extractWave`. Network and POS share one rate track and one
   * rate. The support counts the network alone: flicker and motion appear in both waveforms, so their agreement does
   * not prove a pulse.
   */
  analyze(face: number, samples: WindowSamples, wave: Waveform, context: WindowContext | null = null): WindowResult {
    const { skin: { startS }, endS } = samples;
    const [still, ...second] = this.waves(samples, wave);
    const waves = [still, ...second].filter((one) => any(one.valid));
    const spec = spectrum(still);
    const around = this.contextSpectra(context);
    const tracked = waves.length > 0 ? update(this.rates, waves.map((one) => spectrum(one)), around, endS) : null;
    let { peak, quality } = assess({ samples, wave: still, method: this.config.method }, tracked);
    if (peak && tracked) {
      const lineBpm = jointBpm(waves.flatMap((one) => spectralPeak(one, tracked.bpm) ?? []));
      peak = { ...peak, bpm: lineBpm };
      if (waves.length > 1) {
        update(this.networkRates, [spec], around.slice(0, 1), endS);
        quality = { ...quality, support: this.networkRates.support(tracked.bpm) };
      }
    }
    const reading = this.gate.push(peak, quality, startS, endS);
    const shown = Array.from(GRID_BPM, (bpm) => spec.at(bpm / 60));
    return { kind: "window", face, startS, endS, reading, peak, quality, spectrum: shown };
  }

  /** Return the waveforms of the network or method and of POS, without motion. */
  private waves(samples: WindowSamples, wave: Waveform): Waveform[] {
    const second = this.config.second ? [extract("pos", samples.skin)] : [];
    return [wave, ...second].map((one) => withoutMotion(one, samples));
  }

  /** Return the spectra of the context with their weight. */
  private contextSpectra(context: WindowContext | null): Weighted[] {
    if (context === null) return [];
    const weight = CONTEXT_WEIGHT * Math.min(1, context.extraS / CONTEXT_FULL_S);
    const waves = this.waves(context.samples, this.extractWave(context.samples));
    return waves.filter((one) => any(one.valid)).map((one) => ({ spec: spectrum(one), weight }));
  }
}

interface Weighted {
  readonly spec: Spectrum;
  readonly weight: number;
}

/** Update a rate track with the spectra of a window and those of its context. */
function update(rates: RateTracker, spectra: readonly Spectrum[], around: readonly Weighted[], endS: number): TrackedRate {
  const weights = [...spectra.map(() => 1), ...around.map(({ weight }) => weight)];
  return rates.update([...spectra, ...around.map(({ spec }) => spec)], endS, weights);
}

/** Return the waveform that a method extracts; an invalid one if the face was seen too briefly. */
export function extract(method: string, skin: RgbTrace): Waveform {
  const count = skin.valid.length;
  if (sum(skin.valid) < MIN_WAVE_S * skin.fps) return { ...skin, values: new Float64Array(count), valid: new Uint8Array(count) };
  return METHODS[method].extract(skin);
}

const withoutMotion = (wave: Waveform, { centre }: WindowSamples): Waveform => (centre === null ? wave : removeMotion(wave, centre));
