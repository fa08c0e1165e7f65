import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig } from "vitest/config";

const COMPRESSED = /\.(wasm|js|css|html|svg|txt|webmanifest)$/;

/** Writes a gzip and a brotli file next to every file of the build; the server sends the one that a browser accepts. */
function precompress() {
  let folder = "";
  return {
    name: "precompress",
    apply: "build" as const,
    configResolved: (config: { root: string; build: { outDir: string } }) => { folder = join(config.root, config.build.outDir); },
    closeBundle: () => {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => COMPRESSED.test(file))) {
        const content = readFileSync(join(folder, name));
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_LGWIN]: 22 } }));
      }
    },
  };
}

export default defineConfig({
  base: "./", // the page works in any folder of any host
  build: {
    outDir: "../../src/phase_rppg/web/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy forbids data: URLs
    modulePreload: { polyfill: false },
  },
  plugins: [precompress()],
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    alias: [{ find: /^phase-rppg$/, replacement: fileURLToPath(new URL("../phase-rppg/src/index.ts", import.meta.url)) }], // no build needed
  },
});
