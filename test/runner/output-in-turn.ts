// SPDX-License-Identifier: Apache-2.0
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";

/** What one of several processes prints: that of the first is shown at once, that of another when it has ended. */
export class OutputInTurn {
  readonly to: "inherit" | "ignore" | number;
  readonly #file: string;

  constructor(output: "inherit" | "ignore", file: string, n: number) {
    this.#file = file;
    this.to = output === "inherit" && n > 0 ? openSync(file, "w") : output;
  }

  close(): void {
    if (typeof this.to !== "number") return;
    closeSync(this.to);
    process.stdout.write(readFileSync(this.#file));
    rmSync(this.#file);
  }
}
