/** Frames of a video element with their timestamps. */

import type { RawPicture } from "../protocol.js";
import { FrameClock } from "./frameClock.js";
import { PixelReader } from "./grabber.js";

export interface PumpedFrame {
  readonly picture: VideoFrame | ImageBitmap | RawPicture;
  readonly tS: number;
}

export interface PumpOptions {
  readonly live: boolean; // a camera, not a file
  take(frame: PumpedFrame): void;
  accepts(tS: number): boolean; // called for every new frame, before its pixels are read
}

/** Calls `take` for every new frame that `accepts` returns true for, until it is stopped. */
export class Pump {
  private handle = 0;
  private stopped = false;
  private shownS = -1; // `currentTime` of the last frame, for browsers without frame callbacks
  private readonly clock: FrameClock;
  private readonly callbacks = "requestVideoFrameCallback" in HTMLVideoElement.prototype;
  // A worker without OffscreenCanvas cannot read the pixels of a frame, so the page reads them.
  private readonly reader = "OffscreenCanvas" in globalThis ? null : new PixelReader();

  constructor(private readonly video: HTMLVideoElement, private readonly options: PumpOptions) {
    this.clock = new FrameClock(options.live);
    this.next();
  }

  stop(): void {
    this.stopped = true;
    if (this.callbacks) this.video.cancelVideoFrameCallback(this.handle);
    else cancelAnimationFrame(this.handle);
  }

  private next(): void {
    if (this.stopped) return;
    if (this.callbacks)
      this.handle = this.video.requestVideoFrameCallback((_now, { mediaTime }) => {
        if (!this.stopped) this.grab(mediaTime);
        this.next();
      });
    else this.handle = requestAnimationFrame(() => this.poll());
  }

  /** Without frame callbacks a new frame is recognised by the time of the video element. */
  private poll(): void {
    const { currentTime, readyState } = this.video;
    if (!this.stopped && readyState >= HTMLMediaElement.HAVE_CURRENT_DATA && currentTime !== this.shownS) {
      this.shownS = currentTime;
      this.grab(currentTime);
    }
    this.next();
  }

  private grab(mediaS: number): void {
    const nowS = performance.now() / 1000;
    if (this.reader) return this.readPixels(this.clock.update({ mediaS, frameS: null, nowS }));
    if ("VideoFrame" in globalThis) {
      let picture: VideoFrame;
      try {
        picture = new VideoFrame(this.video);
      } catch {
        return; // the element has no frame yet
      }
      const tS = this.clock.update({ mediaS, frameS: picture.timestamp / 1e6, nowS });
      if (this.options.accepts(tS)) this.options.take({ picture, tS });
      else picture.close();
      return;
    }
    const tS = this.clock.update({ mediaS, frameS: null, nowS });
    if (this.options.accepts(tS))
      createImageBitmap(this.video).then((picture) => (this.stopped ? picture.close() : this.options.take({ picture, tS })), () => undefined);
  }

  private readPixels(tS: number): void {
    if (!this.options.accepts(tS)) return;
    const { rgba, width, height } = this.reader!.read(this.video, this.video.videoWidth, this.video.videoHeight);
    this.options.take({ picture: { rgba, width, height }, tS });
  }
}
