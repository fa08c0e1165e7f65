/*
 * Keeps the files of this page for use without a connection. The server writes VERSION and FILES before this text:
 * a changed file changes the version, and all files of a version are used together.
 */
/* global VERSION, FILES */
const PREFIX = "phase-live-";
const CACHE = PREFIX + VERSION;
const address = (name) => new URL(name, self.registration.scope).href;

self.addEventListener("install", (event) => {
  event.waitUntil(store());
});

async function store() {
  const cache = await caches.open(CACHE);
  for (const name of FILES) {
    // "default" takes what the page has just loaded; names without a hash are checked with the server.
    const answer = await fetch(address(name), { cache: name.startsWith("assets/") ? "default" : "no-cache" });
    if (!answer.ok) throw new Error(name + ": " + answer.status);
    await cache.put(address(name), answer);
  }
}

self.addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) =>
    Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)))));
});

self.addEventListener("message", (event) => {
  if (event.data === "activate") self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(self.registration.scope)) return;
  const path = request.url.slice(self.registration.scope.length).split(/[?#]/)[0];
  const name = path === "" ? "index.html" : path;
  if (!FILES.includes(name)) return;
  event.respondWith(caches.open(CACHE).then((cache) => cache.match(address(name))).then((kept) => kept ?? fetch(request)));
});
