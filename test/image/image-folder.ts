// SPDX-License-Identifier: Apache-2.0
// Berth's programs, and the folder of the image that the files of one run share, which the first that needs one makes:
// `node --test --test-global-setup=test/image/image-folder.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { globalSetup as makePrograms } from "../support/programs.ts";
import { IMAGE_FOLDER_VARIABLE } from "./archive.ts";

let folder = "";

export function globalSetup(): void {
  makePrograms();
  folder = mkdtempSync(join(tmpdir(), "berth-images-"));
  process.env[IMAGE_FOLDER_VARIABLE] = folder;
}

export function globalTeardown(): void {
  rmSync(folder, { recursive: true, force: true });
}
