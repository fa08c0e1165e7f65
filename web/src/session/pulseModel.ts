/** What a session asks of a network; the twin of session/pulse_model.py. */

/** A streaming network with its state. `fresh` gives the same network at the beginning of another face. */
export interface PulseModel {
  readonly name: string;
  readonly fps: number; // the uniform clock on which it wants its pictures
  readonly size: number; // side of the square pictures
  readonly delayFrames: number; // step() answers for the picture so many frames ago
  readonly attention?: { readonly side: number; readonly weights: Float32Array } | null; // where, in the newest picture
  fresh(): PulseModel;
  /** The wave (t,) of the next pictures, each (S,S,3) u8. */
  step(crops: readonly Uint8Array[]): Promise<Float32Array>;
}
