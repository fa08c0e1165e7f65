/** Writes src/data.ts: the JSON files that Python reads as well, as a module that needs no bundler. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";

const SHARED = new URL("../../../src/phase_rppg/", import.meta.url);
const target = new URL("../src/data.ts", import.meta.url);

const CONSTANTS = new URL("../../../conformance/constants.json", import.meta.url); // of the Python modules

const read = (name) => readFileSync(new URL(name, SHARED), "utf8").trim();
const lines = [
  "/** Data that Python and this package share. Written by scripts/data.mjs; do not edit. */",
  "",
  `export const texts = ${read("session/reasons.json")} as const;`,
  "",
  `export const constants = ${read("signal/constants.json")} as const;`,
  "",
  "/** Constants of the Python modules, by module. */",
  `export const reference = ${readFileSync(CONSTANTS, "utf8").trim()};`,
  "",
];
const text = lines.join("\n");
if (!existsSync(target) || readFileSync(target, "utf8") !== text) writeFileSync(target, text);
