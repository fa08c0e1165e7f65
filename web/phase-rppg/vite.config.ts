import { defineConfig } from "vitest/config";

/** Builds the worker with onnxruntime-web into one classic script, because older browsers have no module workers. */
export default defineConfig(({ command }) => ({
  base: "./",
  define: command === "build" ? { "import.meta.url": "self.location.href" } : {}, // a classic script has no import.meta
  build: {
    outDir: "assets",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    rollupOptions: {
      input: "src/worker.ts",
      output: { format: "iife", entryFileNames: "worker.js", assetFileNames: "[name][extname]" },
    },
  },
  test: { include: ["tests/**/*.test.ts"], testTimeout: 60_000 },
}));
