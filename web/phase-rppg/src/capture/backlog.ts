/** Which camera frames the worker gets, and whether the computer keeps up. It does not access the document. */

const MAX_FRAMES = 8; // in the queue of the worker; a camera has few frames to lend
const MAX_LATENCY_MS = 500; // a frame that waits behind an older one is not sent; this bounds the delay of a number
const MEMORY_MS = 10_000; // dropped frames and stalls are remembered for one window
const DROPPED_SHARE = 0.25; // of the frames; more than this, and the computer is busy
const MIN_FRAMES = 15; // fewer say nothing
const STALL_MS = 700; // a timer that is late by this shows that the page did not run

/**
 * Bounds the queue of the worker in frames and in time.
 *
 * Short stalls fill the queue and lose no frame. When the worker does not keep up, frames are dropped, and `busy`
 * tells that the computer is the cause, not the camera or the face.
 */
export class Backlog {
  private waiting: number[] = []; // when the unanswered frames were sent, in ms
  private offered: { readonly atMs: number; readonly sent: boolean }[] = [];
  private stalledMs = -Infinity;
  private tickMs: number | null = null;

  /** Whether to send a frame that arrives now. */
  accepts(nowMs: number): boolean {
    const sent = this.waiting.length < MAX_FRAMES && (this.waiting.length === 0 || nowMs - this.waiting[0] < MAX_LATENCY_MS);
    this.offered.push({ atMs: nowMs, sent });
    while (nowMs - this.offered[0].atMs > MEMORY_MS) this.offered.shift();
    return sent;
  }

  sent(nowMs: number): void {
    this.waiting.push(nowMs);
  }

  answered(): void {
    this.waiting.shift();
  }

  /** Frames in the queue of the worker. */
  get length(): number {
    return this.waiting.length;
  }

  /** How long the oldest frame has waited, in ms; 0 if none waits. */
  waitedMs(nowMs: number): number {
    return this.waiting.length > 0 ? nowMs - this.waiting[0] : 0;
  }

  /** Call this at a fixed interval while the page is visible; a late call is a stall. `null` after a hidden time. */
  tick(nowMs: number | null, intervalMs: number): void {
    if (nowMs !== null && this.tickMs !== null && nowMs - this.tickMs - intervalMs > STALL_MS) this.stalledMs = nowMs;
    this.tickMs = nowMs;
  }

  /** Whether the computer did not keep up within the last window. */
  busy(nowMs: number): boolean {
    const recent = this.offered.filter(({ atMs }) => nowMs - atMs <= MEMORY_MS);
    const dropped = recent.filter(({ sent }) => !sent).length;
    return nowMs - this.stalledMs <= MEMORY_MS || this.waitedMs(nowMs) > MAX_LATENCY_MS || (recent.length >= MIN_FRAMES && dropped > DROPPED_SHARE * recent.length);
  }

  clear(): void {
    this.waiting = [];
  }
}
