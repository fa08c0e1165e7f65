/** The time of a frame, from the clocks that a browser offers. It does not access the document. */

const PROBATION = 8; // distinct frames after which a clock is judged
const MAX_DRIFT_S = 0.25; // a clock that departs further from the reference clock is refused
const MAX_LEAD_S = 0.2; // a frame whose time is further ahead of those before it has a wrong time
const RECENT = 15; // frames with which the time of the next one is compared

/** What a browser tells about one frame, in seconds. Clocks have different origins. */
export interface FrameTimes {
  readonly mediaS: number | null; // `mediaTime` of the frame callback
  readonly frameS: number | null; // `VideoFrame.timestamp`
  readonly nowS: number; // monotonic time of the call
}

/** A clock under examination against a reference. */
class Candidate {
  private readonly offsets: number[] = []; // reference − clock
  private last = NaN;
  private advances = 0;

  add(valueS: number, referenceS: number): void {
    if (this.offsets.length >= PROBATION) return;
    if (valueS > this.last) this.advances += 1;
    this.last = valueS;
    this.offsets.push(referenceS - valueS);
  }

  get complete(): boolean {
    return this.offsets.length >= PROBATION;
  }

  /** Whether the clock advanced in most frames and kept its distance to the reference. */
  get plausible(): boolean {
    const spread = Math.max(...this.offsets) - Math.min(...this.offsets);
    return this.advances >= PROBATION / 2 && spread <= MAX_DRIFT_S;
  }

  get offsetS(): number {
    return median(this.offsets);
  }
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1];

/**
 * Returns one increasing time for each frame.
 *
 * The timestamp of the frame itself is exact: a late callback may find a newer frame than announced. But Firefox
 * counts it in whole seconds, and a camera may have a `mediaTime` that stands still. So each clock is compared with
 * the next simpler one in the first frames, and used only if both agree. The order is: monotonic time (cameras only),
 * `mediaTime`, timestamp of the frame. Firefox announces single frames of a captured video element with times in the
 * future; they get the monotonic time.
 */
export class FrameClock {
  private readonly media = new Candidate();
  private readonly frame = new Candidate();
  private recent: number[] = []; // monotonic time − mediaTime

  /** `live`: whether the source runs in real time, so that the monotonic time can check it. */
  constructor(private readonly live: boolean) {}

  /** Return the time of a frame in seconds. */
  update({ mediaS, frameS, nowS }: FrameTimes): number {
    const base = this.baseS(mediaS, nowS);
    if (frameS === null) return base;
    this.frame.add(frameS, base);
    const trusted = this.frame.complete && this.frame.plausible;
    return trusted ? frameS + this.frame.offsetS : base;
  }

  private baseS(mediaS: number | null, nowS: number): number {
    if (mediaS === null) return nowS;
    if (!this.live) return mediaS;
    this.media.add(mediaS, nowS);
    if (this.media.complete && !this.media.plausible) return nowS + this.nowOffsetS(mediaS, nowS);
    const usual = median([...this.recent, nowS - mediaS]);
    this.recent = [...this.recent, nowS - mediaS].slice(-RECENT);
    return nowS - mediaS < usual - MAX_LEAD_S ? nowS - usual : mediaS;
  }

  private nowShift: number | null = null;

  /** A frozen `mediaTime` is continued by the monotonic time from where it stopped. */
  private nowOffsetS(mediaS: number, nowS: number): number {
    return (this.nowShift ??= mediaS - nowS + 1e-3);
  }
}
