// SPDX-License-Identifier: Apache-2.0
import type { Definition } from "./metric-shape.ts";

/** An ADD from memory takes less than 1 ms; one that waits for its binding up to 5 s. */
const CNI_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A disk with a cache takes 0.2 ms for an fsync; 1 s is a disk that is about to fail. */
const FSYNC_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** What the agent of a node exposes, and no webhook. */
export const AGENT_METRICS = {
  berth_cni_requests_total: {
    type: "counter",
    by: "agent",
    help: "CNI requests by verb, outcome (succeeded, failed) and number of the CNI error",
    labels: ["verb", "outcome", "code"],
  },
  berth_cni_duration_seconds: {
    type: "histogram",
    by: "agent",
    help: "Time to answer one CNI request, in the agent",
    labels: ["verb"],
    buckets: CNI_SECONDS,
  },
  berth_agent_claims: {
    type: "gauge",
    by: "agent",
    help: "Claims that are bound to this node, as far as the agent knows",
    labels: [],
  },
  berth_agent_attachments: {
    type: "gauge",
    by: "agent",
    help: "Interfaces with addresses from Berth, by the source of the addresses (claim, block, ranges, static)",
    labels: ["source"],
  },
  berth_agent_stray_sandboxes: {
    type: "gauge",
    by: "agent",
    help: "Sandboxes of this node with addresses of a claim that is not bound to their pod, or of a block that is not the node's: another pod may get these addresses",
    labels: [],
  },
  berth_agent_ranges_in_pools: {
    type: "gauge",
    by: "agent",
    help: "Networks of this node whose own ranges have addresses that the pool gives too; absent if there are none",
    labels: ["pool"],
  },
  berth_agent_untold_detachments: {
    type: "gauge",
    by: "agent",
    help: "Sandboxes that are gone and whose end the agent has not reported yet",
    labels: [],
  },
  berth_agent_spooled_releases: {
    type: "gauge",
    by: "agent",
    help: "DELs in the spool by state: waiting for the agent, or bad (set aside because they cannot be read)",
    labels: ["state"],
  },
  berth_agent_spool_oldest_seconds: {
    type: "gauge",
    by: "agent",
    help: "Age of the oldest DEL that waits in the spool; 0 if there is none",
    labels: [],
  },
  berth_agent_plugin_failing: {
    type: "gauge",
    by: "agent",
    help: "1 if the CNI plugin, or another name of it, could not be written to the host, else 0",
    labels: [],
  },
  berth_journal_commit_duration_seconds: {
    type: "histogram",
    by: "agent",
    help: "Time of one commit of the journal, most of it fsync; every ADD and DEL waits for one",
    labels: [],
    buckets: FSYNC_SECONDS,
  },
  berth_journal_failing: {
    type: "gauge",
    by: "agent",
    help: "1 if the last write of the journal failed, else 0",
    labels: [],
  },
} as const satisfies Record<string, Definition>;
