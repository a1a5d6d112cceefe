// SPDX-License-Identifier: Apache-2.0
import type { BenchSetup } from "../bench/bench.ts";
import { FigureFolder } from "../bench/figure-folder.ts";

/** Where figures of a real API server are made. */
export class ApiSetup extends FigureFolder implements BenchSetup {
  readonly lacks: readonly string[] = [];

  /** In the folder for temporary files, where the control planes have theirs. */
  static async open(quick: boolean): Promise<ApiSetup> {
    return new ApiSetup(await FigureFolder.make("berth-bench-api-"), quick);
  }
}
