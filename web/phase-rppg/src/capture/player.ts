/** Control of the playback rate of a video file: slower when many frames are missed, faster when few are. */

const RATES = { slowest: 0.25, first: 0.5, fastest: 2 };
const UPDATE_FRAMES = 24; // frames between two changes of the rate
const MISSED = { few: 0.03, many: 0.12 }; // share of frames that the browser skipped
const GAP_S = 0.2; // after a longer gap the video seeks back, once

/** Whether to process a frame, and how to continue playback. */
export interface PlaybackStep {
  readonly take: boolean;
  readonly rate: number;
  readonly seekToS: number | null; // play again from this time
}

/** Chooses the playback rate from the times of presented frames. It does not access the video element. */
export class Pacer {
  private lastS = -Infinity;
  private intervalS = Infinity; // shortest frame interval so far
  private retriedS = -Infinity; // a gap that remains after a retry is part of the video
  private taken = 0;
  private missed = 0;
  private rate = RATES.first;

  update(tS: number): PlaybackStep {
    const stepS = tS - this.lastS;
    if (stepS <= 1e-6) return { take: false, rate: this.rate, seekToS: null };
    if (Number.isFinite(stepS)) {
      this.intervalS = Math.min(this.intervalS, stepS);
      if (stepS > Math.max(GAP_S, 3 * this.intervalS) && this.lastS > this.retriedS) {
        this.retriedS = this.lastS;
        this.slowDown();
        return { take: false, rate: this.rate, seekToS: this.lastS + this.intervalS / 2 };
      }
      this.missed += Math.round(stepS / this.intervalS) - 1;
    }
    this.lastS = tS;
    if (++this.taken >= UPDATE_FRAMES) this.adjustRate();
    return { take: true, rate: this.rate, seekToS: null };
  }

  private adjustRate(): void {
    const share = this.missed / (this.taken + this.missed);
    if (share > MISSED.many) this.slowDown();
    else if (share < MISSED.few) this.rate = Math.min(RATES.fastest, this.rate * 1.4);
    this.taken = this.missed = 0;
  }

  private slowDown(): void {
    this.rate = Math.max(RATES.slowest, this.rate * 0.7);
  }
}
