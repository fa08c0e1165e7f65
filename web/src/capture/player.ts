/** Plays a video file so that every frame is seen: slower when frames are missed, faster when none are. */

const SLOWEST = 0.1;
const FIRST = 0.25; // slow at first, to learn how far apart the frames are
const FASTEST = 2;
const MISSED = 1.6; // a step longer than so many frame intervals has left frames out
const CALM_FRAMES = { early: 15, later: 45 }; // without a miss before it goes faster

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
  private retriedS = -Infinity; // a step that was looked at twice is a true pause
  private calm = 0;
  private everMissed = false;
  private rate = FIRST;

  see(tS: number): Verdict {
    const stepS = tS - this.lastS;
    if (stepS <= 1e-6) return { take: false, rate: this.rate, backTo: null };
    const missed = Number.isFinite(stepS) && stepS > MISSED * this.intervalS && this.lastS > this.retriedS + 1e-6;
    if (missed) {
      this.calm = 0;
      this.everMissed = true;
      this.rate = Math.max(SLOWEST, this.rate * 0.5);
      this.retriedS = this.lastS;
      return { take: false, rate: this.rate, backTo: this.lastS + this.intervalS / 2 };
    }
    if (Number.isFinite(stepS)) this.intervalS = Math.min(this.intervalS, stepS);
    this.lastS = tS;
    if (++this.calm >= (this.everMissed ? CALM_FRAMES.later : CALM_FRAMES.early)) {
      this.calm = 0;
      this.rate = Math.min(FASTEST, this.rate * (this.everMissed ? 1.2 : 1.5));
    }
    return { take: true, rate: this.rate, backTo: null };
  }
}
