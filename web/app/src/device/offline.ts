/** Makes the page available offline, and tells when a new version is ready. */

/** Register the service worker after the page has loaded, so that it finds its files in the browser's cache. */
export function registerOffline(onUpdate: (reload: () => void) => void): void {
  if (!("serviceWorker" in navigator) || !import.meta.env.PROD) return;
  let reloading = false;
  const hadController = navigator.serviceWorker.controller !== null;
  navigator.serviceWorker.addEventListener("controllerchange", () => {
    if (reloading) location.reload();
  });
  const offer = (waiting: ServiceWorker): void => onUpdate(() => {
    reloading = true;
    waiting.postMessage("activate");
  });
  void navigator.serviceWorker.register("./sw.js").then((registration) => {
    if (registration.waiting && hadController) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const fresh = registration.installing;
      fresh?.addEventListener("statechange", () => {
        if (fresh.state === "installed" && navigator.serviceWorker.controller) offer(fresh);
      });
    });
  }, () => undefined); // a certificate that the browser does not know, or storage is blocked: the page works online
}
