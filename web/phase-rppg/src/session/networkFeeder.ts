/** Feeds the crops of one face to a streaming network, in batches; a port of session/network_feeder.py. */

import { reference } from "../data.js";
import type { PulseModel } from "./pulseModel.js";

export const BATCH = reference.network_feeder.BATCH; // crops per call of the network
export const FILE_BATCH = reference.network_feeder.FILE_BATCH; // the same if results may be late

/**
 * Collects crops, runs the network and passes its output to `write(firstTick, values)`. The network restarts after
 * every absence of the face. Its output is shifted back by its delay, and output for the time before the first crop
 * is dropped.
 */
export class NetworkFeeder {
  model: PulseModel;
  private toDrop: number; // outputs that belong to the time before the first crop
  private started = false; // whether the network has had a crop since its last restart
  private pending: Uint8Array[] = [];
  private pendingFirst: number;

  constructor(private readonly initial: PulseModel, firstTick: number, private readonly write: (first: number, values: Float32Array) => void, private readonly batch = BATCH) {
    this.model = initial.fresh();
    this.toDrop = this.model.delayFrames;
    this.pendingFirst = firstTick;
  }

  /** Add the crop of a tick; a full batch of crops runs the network. */
  async push(tick: number, crop: Uint8Array): Promise<void> {
    if (this.pending.length === 0) this.pendingFirst = tick;
    this.pending.push(crop);
    this.started = true;
    if (this.pending.length >= this.batch) await this.run();
  }

  /** Run the network on the crops that were not given to it yet. */
  async run(): Promise<void> {
    if (this.pending.length === 0) return;
    const values = await this.model.step(this.pending); // (t,)
    this.pending = [];
    const dropped = Math.min(this.toDrop, values.length);
    this.toDrop -= dropped;
    this.write(this.pendingFirst - this.model.delayFrames + dropped, values.subarray(dropped));
  }

  /** Run the network on the pending crops, then reset its state. */
  async restart(): Promise<void> {
    if (!this.started) return;
    await this.run();
    this.model = this.initial.fresh();
    this.started = false;
    this.toDrop = this.model.delayFrames;
  }

  /** Repeat the last crop for the delay of the network, which completes its output up to `stopTick`. */
  async flush(crop: Uint8Array, stopTick: number): Promise<void> {
    if (!this.model.delayFrames) return;
    await this.run();
    this.pendingFirst = stopTick;
    this.pending = Array<Uint8Array>(this.model.delayFrames).fill(crop);
    await this.run();
  }
}
