import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./", // the page works in any folder of any host
  build: {
    outDir: "../src/phase_rppg/web/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content policy knows no data: addresses
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
  test: { include: ["tests/**/*.test.ts"], testTimeout: 60_000 },
});
