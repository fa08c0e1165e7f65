/** The interface of a network in a session; a port of session/pulse_model.py. */

/** A streaming network with its state. `fresh` returns the network with its initial state. */
export interface PulseModel {
  readonly name: string;
  readonly fps: number; // frame rate of its input
  readonly size: number; // side of the square crops
  readonly delayFrames: number; // step() returns the waveform of this many frames ago
  readonly attention?: { readonly side: number; readonly weights: Float32Array } | null; // attention mask of the last frame
  fresh(): PulseModel;
  /** Return the waveform (t,) for the next crops, each (S,S,3) u8. */
  step(crops: readonly Uint8Array[]): Promise<Float32Array>;
}
