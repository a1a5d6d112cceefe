// SPDX-License-Identifier: Apache-2.0
import type { Shop } from "../bench/bench.ts";
import { FigureFolder } from "../bench/figure-folder.ts";

/** Where figures of a real API server are made. */
export class ApiShop extends FigureFolder implements Shop {
  readonly lacks: readonly string[] = [];

  /** In the folder for temporary files, where the control planes have theirs. */
  static async open(quick: boolean): Promise<ApiShop> {
    return new ApiShop(await FigureFolder.make("berth-bench-api-"), quick);
  }
}
