/** Pulse from face video in a browser. The networks run in a worker; no frame leaves the device. */

export { type FrameSource, Session, type SessionEvents, type SessionOptions, type State, type StateDetail, type WaveDetail } from "./pulseSession.js";
export { Backlog } from "./capture/backlog.js";
export { type AssetUrls, Engine, type Finished, type FrameDone, type Ready } from "./engine.js";
export { type CameraChoice, CameraError, type CameraProblem, listCameras, openCamera } from "./capture/camera.js";
export { Pacer } from "./capture/player.js";
export { Pump, type PumpedFrame } from "./capture/pump.js";
export type { DecodedFile, NotDecodableError } from "./capture/fileDecoder.js";
export type { FaceRegion, FaceSample, RawPicture } from "./protocol.js";
export { type Calibration, calibrationOf } from "./session/calibration.js";
export { csvText, document, type Result } from "./session/document.js";
export { Collector, type FaceResult } from "./session/offline.js";
export type { Event, WindowResult } from "./session/results.js";
export { findBeats } from "./signal/rate.js";
export { GRID_BPM } from "./signal/rateTracking.js";
export { texts } from "./data.js";
export { type Estimate, isEstimate, type NoReading, type Quality, type Reading, type Reason, type Waveform } from "./types.js";
