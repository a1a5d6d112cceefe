// SPDX-License-Identifier: Apache-2.0
import { noopLogger } from "../../allocator/base/ports.ts";
import { createMetrics, type MetricsRegistry } from "../../system/metrics.ts";

/** Metrics whose values a test reads as they are scraped. */
export interface Exposed {
  readonly metrics: MetricsRegistry;
  /** The lines of one metric, without its name where it has labels: `{state="held"} 1`. */
  of(name: string): Promise<readonly string[]>;
}

export function exposed(): Exposed {
  const metrics = createMetrics(noopLogger);
  return {
    metrics,
    async of(name) {
      const { body } = await metrics.expose();
      return body
        .split("\n")
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
        .map((line) => line.slice(name.length).trim());
    },
  };
}
