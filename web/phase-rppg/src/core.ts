/** The session without worker, detector and network, which are handed in; for Node.js and for own workers. */

export { type Detection, Detector, type DetectorNetwork } from "./face/detector.js";
export { type Calibration, calibrationOf, read as readCalibration } from "./session/calibration.js";
export { type Choices, CONTEXT_S, SessionConfig } from "./session/config.js";
export { csvText, document, type Result } from "./session/document.js";
export { Collector, type FaceResult } from "./session/offline.js";
export type { PulseModel } from "./session/pulseModel.js";
export type { Event, WindowResult } from "./session/results.js";
export { Session } from "./session/session.js";
export { type Estimate, isEstimate, type NoReading, type Picture, type Quality, type Reading, type Reason, type Waveform } from "./types.js";
