/** Plays a video file so that nearly every frame is seen: slower when many are missed, faster when few are. */

const RATES = { slowest: 0.25, first: 0.5, fastest: 2 };
const JUDGED_FRAMES = 24; // frames between two changes of speed
const MISSED = { few: 0.03, many: 0.12 }; // share of frames that were not shown
const GAP_S = 0.2; // a longer pause in the picture is worth going back for, once

/** What a frame that was just shown asks for: whether to take it, and how to go on. */
export interface Verdict {
  readonly take: boolean;
  readonly rate: number;
  readonly backTo: number | null; // play again from this time
}

/** Watches the times of shown frames. Nothing here touches the video element. */
export class Pacer {
  private lastS = -Infinity;
  private intervalS = Infinity; // the shortest step so far
  private retriedS = -Infinity; // a pause that was looked at twice is a true one
  private taken = 0;
  private missed = 0;
  private rate = RATES.first;

  see(tS: number): Verdict {
    const stepS = tS - this.lastS;
    if (stepS <= 1e-6) return { take: false, rate: this.rate, backTo: null };
    if (Number.isFinite(stepS)) {
      this.intervalS = Math.min(this.intervalS, stepS);
      if (stepS > Math.max(GAP_S, 3 * this.intervalS) && this.lastS > this.retriedS) {
        this.retriedS = this.lastS;
        this.slower();
        return { take: false, rate: this.rate, backTo: this.lastS + this.intervalS / 2 };
      }
      this.missed += Math.round(stepS / this.intervalS) - 1;
    }
    this.lastS = tS;
    if (++this.taken >= JUDGED_FRAMES) this.judge();
    return { take: true, rate: this.rate, backTo: null };
  }

  private judge(): void {
    const share = this.missed / (this.taken + this.missed);
    if (share > MISSED.many) this.slower();
    else if (share < MISSED.few) this.rate = Math.min(RATES.fastest, this.rate * 1.4);
    this.taken = this.missed = 0;
  }

  private slower(): void {
    this.rate = Math.max(RATES.slowest, this.rate * 0.7);
  }
}
