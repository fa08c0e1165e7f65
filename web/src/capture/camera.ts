/** Cameras: which there are, opening one, and what to tell a person when it does not open. */

export class CameraError extends Error {}

export interface CameraChoice {
  readonly id: string;
  readonly label: string;
}

/** Open a camera; the first that the browser offers when none is named. */
export async function openCamera(id?: string): Promise<MediaStream> {
  if (!window.isSecureContext || !navigator.mediaDevices?.getUserMedia)
    throw new CameraError("This browser gives cameras only to pages on https or on this computer (localhost). Open the page there, or open a video file.");
  const wanted: MediaTrackConstraints = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: false, video: id ? { ...wanted, deviceId: { exact: id } } : { ...wanted, facingMode: "user" } });
  } catch (error) {
    throw new CameraError(cameraProblem(error));
  }
}

/** The cameras by name; names are empty until the person has allowed one. */
export async function listCameras(): Promise<CameraChoice[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  return devices
    .filter((device) => device.kind === "videoinput")
    .map((device, i) => ({ id: device.deviceId, label: device.label || `Camera ${i + 1}` }));
}

/** What went wrong, and what to do about it. */
export function cameraProblem(error: unknown): string {
  const name = error instanceof DOMException || error instanceof Error ? error.name : "";
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      return "The camera is blocked. Allow it with the camera symbol in the address bar (or in the system's privacy settings), then start again.";
    case "NotFoundError":
      return "No camera was found. Plug one in, or open a video file.";
    case "OverconstrainedError":
      return "That camera is gone. Choose another one.";
    case "NotReadableError":
    case "AbortError":
      return "The camera does not start: another program may be using it. Close that program, then start again.";
    default:
      return `The camera does not start (${name || "unknown problem"}). Try another one, or open a video file.`;
  }
}
