/** Copies the networks and calibrations of the Python package to assets/models, with their SHA-256 in index.json, and the licences. */

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../../../src/phase_rppg/", import.meta.url));
const ASSETS = fileURLToPath(new URL("../assets/", import.meta.url));
const FOLDERS = { "models/face": "face/weights", "models/infer": "infer/weights", "models/calibration": "session/calibrations" };

const hashes = {};
rmSync(join(ASSETS, "models"), { recursive: true, force: true });
for (const [target, source] of Object.entries(FOLDERS)) {
  mkdirSync(join(ASSETS, target), { recursive: true });
  for (const name of readdirSync(join(PACKAGE, source)).sort()) {
    if (!/\.(onnx|json|txt)$/.test(name)) continue;
    const file = join(PACKAGE, source, name);
    copyFileSync(file, join(ASSETS, target, name));
    if (!name.endsWith(".txt")) hashes[`${target}/${name}`] = createHash("sha256").update(readFileSync(file)).digest("hex");
  }
}
copyFileSync(fileURLToPath(new URL("../../../LICENSE", import.meta.url)), fileURLToPath(new URL("../LICENSE", import.meta.url)));
copyFileSync(fileURLToPath(new URL("../../app/public/NOTICES.txt", import.meta.url)), join(ASSETS, "NOTICES.txt")); // of what the worker contains
writeFileSync(join(ASSETS, "models/index.json"), `${JSON.stringify(hashes, null, 2)}\n`);
