/** Decodes every frame of a video file with its timestamp, without playing it. */

import { BlobSource, Input, MATROSKA, MP4, QTFF, VideoSampleSink, type VideoSample, WEBM } from "mediabunny";
import type { PumpedFrame } from "./pump.js";
import { PixelReader } from "./grabber.js";

/** The browser or the demuxer does not support this file; playback may still work. */
export class NotDecodableError extends Error {}

/** The file is damaged after some decoded frames. */
export class DamagedFileError extends Error {}

export interface DecodedFile {
  readonly durationS: number;
  readonly width: number; // as displayed
  readonly height: number;
  frames(): AsyncGenerator<PumpedFrame>; // in order of presentation
  close(): void;
}

/** Open a file for decoding; throw a NotDecodableError if it can only be played. */
export async function openFile(file: Blob): Promise<DecodedFile> {
  if (!("VideoDecoder" in globalThis)) throw new NotDecodableError("this browser has no WebCodecs");
  const input = new Input({ source: new BlobSource(file), formats: [MP4, QTFF, WEBM, MATROSKA] });
  try {
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw new NotDecodableError("the file has no video track");
    if (!(await track.canDecode())) throw new NotDecodableError(`this browser has no decoder for ${track.codec ?? "this format"}`);
    const sink = new VideoSampleSink(track);
    return {
      durationS: await track.computeDuration(), width: track.displayWidth, height: track.displayHeight,
      frames: () => decodedFrames(sink), close: () => input.dispose(),
    };
  } catch (error) {
    input.dispose();
    throw error instanceof NotDecodableError ? error : new NotDecodableError(String(error));
  }
}

async function* decodedFrames(sink: VideoSampleSink): AsyncGenerator<PumpedFrame> {
  const reader = new PixelReader();
  let count = 0;
  try {
    for await (const sample of sink.samples()) {
      const tS = sample.timestamp;
      const picture = toPicture(sample, reader);
      sample.close();
      count += 1;
      yield { picture, tS };
    }
  } catch (error) {
    throw count === 0 ? new NotDecodableError(String(error)) : new DamagedFileError(String(error));
  }
}

/** A rotated frame is drawn upright, because the file states its rotation outside the frame. */
function toPicture(sample: VideoSample, reader: PixelReader): PumpedFrame["picture"] {
  if (sample.rotation === 0 && !sample.flip) return sample.toVideoFrame();
  const { displayWidth: width, displayHeight: height } = sample;
  const canvas = new OffscreenCanvas(width, height);
  sample.draw(canvas.getContext("2d", { willReadFrequently: true, alpha: false })!, 0, 0, width, height);
  return reader.read(canvas, width, height);
}
