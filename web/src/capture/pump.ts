/** Frames of a video element, one by one, with the time at which each belongs. */

export interface PumpedFrame {
  readonly picture: VideoFrame | ImageBitmap;
  readonly tS: number;
}

/** Calls `take` for every new frame until it is stopped; the element keeps playing at its own pace. */
export class Pump {
  private handle = 0;
  private stopped = false;

  constructor(private readonly video: HTMLVideoElement, private readonly take: (frame: PumpedFrame) => void, private readonly wants: (tS: number) => boolean) {
    this.next();
  }

  stop(): void {
    this.stopped = true;
    this.video.cancelVideoFrameCallback(this.handle);
  }

  private next(): void {
    if (this.stopped) return;
    this.handle = this.video.requestVideoFrameCallback((_now, { mediaTime }) => {
      if (!this.stopped && this.wants(mediaTime)) this.grab(mediaTime);
      this.next();
    });
  }

  private grab(tS: number): void {
    if ("VideoFrame" in window) {
      try {
        return this.take({ picture: new VideoFrame(this.video), tS });
      } catch {
        return; // the element has no picture yet
      }
    }
    createImageBitmap(this.video).then((picture) => (this.stopped ? picture.close() : this.take({ picture, tS })), () => undefined);
  }
}
