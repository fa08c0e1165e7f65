/** Keeps the screen on while measuring, where the browser allows it. */

export class ScreenWakeLock {
  private sentinel: WakeLockSentinel | null = null;
  private wanted = false;

  constructor() {
    // The browser releases the lock of a hidden page.
    document.addEventListener("visibilitychange", () => {
      if (this.wanted && document.visibilityState === "visible") void this.request();
    });
  }

  hold(): void {
    this.wanted = true;
    void this.request();
  }

  release(): void {
    this.wanted = false;
    void this.sentinel?.release().catch(() => undefined);
    this.sentinel = null;
  }

  private async request(): Promise<void> {
    try {
      const sentinel = await navigator.wakeLock?.request("screen");
      if (!sentinel) return;
      if (this.wanted) this.sentinel = sentinel;
      else await sentinel.release();
    } catch {
      // The battery is low or the browser does not allow it: the screen behaves as usual.
    }
  }
}
