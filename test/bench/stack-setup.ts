// SPDX-License-Identifier: Apache-2.0
import { access } from "node:fs/promises";
import type { BenchSetup } from "./bench.ts";
import { buildDriver } from "./driver.ts";
import { FigureFolder } from "./figure-folder.ts";

const HOST_LOCAL = ["/usr/lib/cni/host-local", "/opt/cni/bin/host-local"];

/** Where figures of the embedded stack are made. */
export class StackSetup extends FigureFolder implements BenchSetup {
  /** Of test/bench/driver.c. */
  readonly driver: string;
  /** The plugin to compare with; undefined where it is not installed. */
  readonly hostLocal: string | undefined;

  private constructor(made: Pick<StackSetup, "folder" | "quick" | "driver" | "hostLocal">) {
    super(made.folder, made.quick);
    this.driver = made.driver;
    this.hostLocal = made.hostLocal;
  }

  static async open(quick: boolean): Promise<StackSetup> {
    const driver = await buildDriver();
    const hostLocal = await firstThatIs(HOST_LOCAL);
    const folder = await FigureFolder.make("berth-bench-");
    return new StackSetup({ folder, quick, driver, hostLocal });
  }

  get lacks(): readonly string[] {
    if (this.hostLocal !== undefined) return [];
    return [
      "host-local is not installed: there is nothing to compare with (Debian: containernetworking-plugins)",
    ];
  }
}

async function firstThatIs(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const there = await access(path).then(
      () => true,
      () => false,
    );
    if (there) return path;
  }
  return undefined;
}
