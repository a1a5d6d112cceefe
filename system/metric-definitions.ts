// SPDX-License-Identifier: Apache-2.0
import { AGENT_METRICS } from "./agent-metrics.ts";
import type { Definition } from "./metric-shape.ts";
import { SHARED_METRICS } from "./shared-metrics.ts";
import { WEBHOOK_METRICS } from "./webhook-metrics.ts";

/** Every metric that a part of Berth exposes; a name that is not here cannot be counted. */
export const METRICS = {
  ...WEBHOOK_METRICS,
  ...SHARED_METRICS,
  ...AGENT_METRICS,
} as const satisfies Record<string, Definition>;
