// SPDX-License-Identifier: Apache-2.0
// The folder of the image that the files of one run share, which the first that needs one makes:
// `node --test --test-global-setup=test/image/image-folder.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IMAGE_FOLDER_VARIABLE } from "./archive.ts";

let folder = "";

export function globalSetup(): void {
  folder = mkdtempSync(join(tmpdir(), "berth-images-"));
  process.env[IMAGE_FOLDER_VARIABLE] = folder;
}

export function globalTeardown(): void {
  rmSync(folder, { recursive: true, force: true });
}
