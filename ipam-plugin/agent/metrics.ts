// SPDX-License-Identifier: Apache-2.0
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Metrics, Sample } from "../../allocator/base/ports.ts";
import { listSpool } from "./background/spool.ts";
import { SOURCES } from "./journal/attachment.ts";
import type { AgentServices } from "./services/services.ts";

/** Gauges of what this node has and has yet to do. `spool` is the folder of the releases that wait. */
export function measureNode(services: AgentServices, spool: string): void {
  const { metrics, attachments, journal, clock, rangeOverlaps } = services;
  metrics.gauge?.("berth_agent_attachments", () => {
    const attached = attachments.attached();
    return SOURCES.filter((source) => source !== "unknown").map((source) => ({
      labels: { source },
      value: attached.filter((attachment) => attachment.source === source).length,
    }));
  });
  gaugeOf(metrics, "berth_agent_untold_detachments", () => attachments.unreported().length);
  gaugeOf(metrics, "berth_journal_failing", () => (journal.failing ? 1 : 0));
  metrics.gauge?.("berth_agent_ranges_in_pools", () =>
    [...rangeOverlaps.networksByPool()].map(([pool, value]) => ({ labels: { pool }, value })),
  );
  metrics.gauge?.("berth_agent_spooled_releases", async () => {
    const { waiting, bad } = await listSpool(spool);
    const counts = { waiting: waiting.length, bad: bad.length };
    return Object.entries(counts).map(([state, value]) => ({ labels: { state }, value }));
  });
  metrics.gauge?.("berth_agent_spool_oldest_seconds", async () => {
    const { waiting } = await listSpool(spool);
    const oldest = Math.min(clock.now(), ...(await writtenAt(waiting.map((name) => join(spool, name)))));
    return [{ labels: {}, value: (clock.now() - oldest) / 1000 }];
  });
}

/** A gauge without labels. */
export function gaugeOf(metrics: Metrics, name: string, value: () => number): void {
  metrics.gauge?.(name, (): Sample[] => [{ labels: {}, value: value() }]);
}

/** Milliseconds since 1970; without the files that are gone meanwhile. */
async function writtenAt(files: readonly string[]): Promise<readonly number[]> {
  const times = files.map((file) =>
    stat(file).then(
      ({ mtimeMs }) => [mtimeMs],
      () => [],
    ),
  );
  return (await Promise.all(times)).flat();
}
