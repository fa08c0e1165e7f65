/** Frames of a video element, one by one, with the time at which each belongs. */

export interface PumpedFrame {
  readonly picture: VideoFrame | ImageBitmap;
  readonly tS: number;
}

/** Calls `take` for every new frame that `wants` agrees to, until it is stopped. */
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
      if (!this.stopped) this.grab(mediaTime);
      this.next();
    });
  }

  /** A late callback may find a newer picture than it was called for, so the picture's own time counts. */
  private grab(mediaTimeS: number): void {
    if ("VideoFrame" in window) {
      let picture: VideoFrame;
      try {
        picture = new VideoFrame(this.video);
      } catch {
        return; // the element has no picture yet
      }
      const tS = picture.timestamp / 1e6;
      if (this.wants(tS)) this.take({ picture, tS });
      else picture.close();
    } else if (this.wants(mediaTimeS)) {
      createImageBitmap(this.video).then((picture) => (this.stopped ? picture.close() : this.take({ picture, tS: mediaTimeS })), () => undefined);
    }
  }
}
