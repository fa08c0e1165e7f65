/** List and open cameras, and explain why one does not open. */

/** Why a camera does not open; a page may have its own text for each. */
export type CameraProblem = "insecure" | "blocked" | "missing" | "gone" | "busy" | "unknown";

export class CameraError extends Error {
  /** `detail`: the name of an unknown problem. */
  constructor(message: string, readonly code: CameraProblem, readonly detail = "") {
    super(message);
  }
}

export interface CameraChoice {
  readonly id: string;
  readonly label: string;
}

/** Open a camera; without an id, the default camera of the browser. */
export async function openCamera(id?: string): Promise<MediaStream> {
  if (!window.isSecureContext || !navigator.mediaDevices?.getUserMedia)
    throw new CameraError("This browser allows cameras only on https or localhost. Open the page there, or open a video file.", "insecure");
  const wanted: MediaTrackConstraints = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: false, video: id ? { ...wanted, deviceId: { exact: id } } : { ...wanted, facingMode: "user" } });
  } catch (error) {
    throw cameraProblem(error);
  }
}

/** List the cameras. The browser hides their names until the user has allowed one. */
export async function listCameras(unnamed = (number: number): string => `Camera ${number}`): Promise<CameraChoice[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  return devices
    .filter((device) => device.kind === "videoinput")
    .map((device, i) => ({ id: device.deviceId, label: device.label || unnamed(i + 1) }));
}

/** Return the cause of the failure and what the user can do. */
export function cameraProblem(error: unknown): CameraError {
  const name = error instanceof DOMException || error instanceof Error ? error.name : "";
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      return new CameraError("The camera is blocked. Allow it with the camera symbol in the address bar (or in the system's privacy settings), then start again.", "blocked");
    case "NotFoundError":
      return new CameraError("No camera was found. Connect one, or open a video file.", "missing");
    case "OverconstrainedError":
      return new CameraError("This camera is not available any more. Choose another one.", "gone");
    case "NotReadableError":
    case "AbortError":
      return new CameraError("The camera does not start: another program may be using it. Close that program, then start again.", "busy");
    default:
      return new CameraError(`The camera does not start (${name || "unknown problem"}). Try another one, or open a video file.`, "unknown", name);
  }
}
