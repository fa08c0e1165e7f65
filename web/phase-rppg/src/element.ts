/**
 * The element `<phase-pulse>`: shows the pulse of the camera, or of a video element.
 *
 *     <phase-pulse camera></phase-pulse>
 *     <phase-pulse for="film"></phase-pulse> <video id="film" src="film.mp4"></video>
 *
 * Attributes: `camera` starts the camera when the element is connected; `for` names a video element; `assets` is the
 * address of the folder `assets` of this package; `method` is `pos` or `chrom`. Events: `reading`, `wave`, `state`.
 */

import { openCamera } from "./capture/camera.js";
import { Pump } from "./capture/pump.js";
import { Session, type SessionEvents, type StateDetail } from "./pulseSession.js";
import type { WindowResult } from "./session/results.js";
import { isEstimate } from "./types.js";

const STYLE = `
  :host { display: inline-grid; gap: .25rem; font: 1rem/1.4 system-ui, sans-serif; }
  :host([hidden]) { display: none; }
  video { width: 100%; max-width: 20rem; border-radius: .5rem; transform: scaleX(-1); }
  output { font-size: 2.5rem; font-variant-numeric: tabular-nums; }
  p { margin: 0; min-height: 1.4em; }
`;
const NO_NUMBER = "––";

export class PhasePulseElement extends HTMLElement {
  private session: Session | null = null;
  private pump: Pump | null = null;
  private stream: MediaStream | null = null;
  private readonly video = document.createElement("video");
  private readonly number = document.createElement("output");
  private readonly text = document.createElement("p");

  constructor() {
    super();
    Object.assign(this.video, { muted: true, playsInline: true, hidden: true });
    this.number.textContent = NO_NUMBER;
    this.number.setAttribute("aria-label", "Pulse in beats per minute");
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [style]; // allowed by strict content security policies
    root.append(this.video, this.number, this.text);
  }

  connectedCallback(): void {
    if (this.hasAttribute("camera")) void this.start();
    else if (this.hasAttribute("for")) queueMicrotask(() => void this.start()); // the video may follow in the document
  }

  disconnectedCallback(): void {
    void this.stop();
  }

  /** Measure the camera, or a video element: the argument, or the one that `for` names. */
  async start(video: HTMLVideoElement | null = this.namedVideo()): Promise<void> {
    await this.stop();
    const method = this.getAttribute("method");
    const session = (this.session = new Session({
      assets: this.getAttribute("assets") ?? undefined,
      method: method === "pos" || method === "chrom" ? method : undefined,
    }));
    session.on("reading", ({ detail }) => this.showReading(detail));
    session.on("state", ({ detail }) => this.showState(detail));
    for (const name of ["reading", "wave", "state", "error"] as const) session.on(name, ({ detail }) => this.emit(name, detail));
    try {
      await session.ready;
      const source = video ?? (await this.openCamera());
      if (this.session !== session) return; // stopped meanwhile
      this.pump = new Pump(source, {
        live: video === null || video.srcObject !== null,
        take: ({ picture, tS }) => void session.push(picture, tS),
        accepts: () => true,
      });
    } catch (error) {
      this.text.textContent = error instanceof Error ? error.message : String(error);
      this.emit("error", error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Stop measuring and release the camera. */
  async stop(): Promise<void> {
    this.pump?.stop();
    this.stream?.getTracks().forEach((track) => track.stop());
    const { session } = this;
    this.pump = this.stream = this.session = null;
    this.video.srcObject = null;
    this.video.hidden = true;
    this.number.textContent = NO_NUMBER;
    session?.close();
  }

  private namedVideo(): HTMLVideoElement | null {
    const id = this.getAttribute("for");
    const found = id === null ? null : (this.getRootNode() as Document | ShadowRoot).getElementById(id);
    if (id !== null && !(found instanceof HTMLVideoElement)) throw new Error(`<phase-pulse for="${id}">: there is no video element with this id`);
    return found as HTMLVideoElement | null;
  }

  private async openCamera(): Promise<HTMLVideoElement> {
    this.stream = await openCamera();
    this.video.srcObject = this.stream;
    this.video.hidden = false;
    await this.video.play();
    return this.video;
  }

  private showReading({ reading }: WindowResult): void {
    this.number.textContent = isEstimate(reading) ? String(Math.round(reading.bpm)) : NO_NUMBER;
  }

  private showState({ state, guidance }: StateDetail): void {
    this.text.textContent = guidance;
    if (state === "searching" || state === "measuring" || state === "refused") this.number.textContent = NO_NUMBER;
  }

  private emit<K extends keyof SessionEvents>(name: K, detail: SessionEvents[K]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}

if (!customElements.get("phase-pulse")) customElements.define("phase-pulse", PhasePulseElement);

declare global {
  interface HTMLElementTagNameMap {
    "phase-pulse": PhasePulseElement;
  }
}
