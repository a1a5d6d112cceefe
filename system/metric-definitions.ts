// SPDX-License-Identifier: Apache-2.0

export interface Definition {
  readonly type: "counter" | "histogram" | "gauge";
  /** Who exposes it: a replica of the webhook, the agent of a node, or both. */
  readonly by: "webhook" | "agent" | "both";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, seconds; of a histogram. */
  readonly buckets?: readonly number[];
}

/** An admission in memory takes about 1 ms; the API server gives up after 10 s unless told otherwise. */
const ADMISSION_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** An ADD from memory takes less than 1 ms; one that waits for its binding up to 5 s. */
const CNI_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A disk with a cache takes 0.2 ms for an fsync; 1 s is a disk that is about to fail. */
const FSYNC_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
/** A call of the API server: it is waited for 10 s at most. */
const CALL_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From what is done at once to what a person has to look at. */
const WAIT_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Every metric that a part of Berth exposes; a name that is not here cannot be counted. */
export const METRICS = {
  berth_admission_reviews_total: {
    type: "counter",
    by: "webhook",
    help: "Admission reviews by outcome (allowed, patched, denied, errored, unreadable) and code of the refusal or fault",
    labels: ["route", "operation", "outcome", "code"],
  },
  berth_admission_duration_seconds: {
    type: "histogram",
    by: "webhook",
    help: "Time to decide one admission review, without reading its body",
    labels: ["route"],
    buckets: ADMISSION_SECONDS,
  },
  berth_reservations: {
    type: "gauge",
    by: "webhook",
    help: "Addresses that are taken, including those that cool down",
    labels: [],
  },
  berth_claims: {
    type: "gauge",
    by: "webhook",
    help: "Claims by phase",
    labels: ["phase"],
  },
  berth_pools: {
    type: "gauge",
    by: "webhook",
    help: "Pools by state: open, disabled, or unusable because their spec cannot be read",
    labels: ["state"],
  },
  berth_pool_capacity_addresses: {
    type: "gauge",
    by: "webhook",
    help: "Addresses that a pool can give away, by family",
    labels: ["pool", "family"],
  },
  berth_pool_unnamed_capacity_addresses: {
    type: "gauge",
    by: "webhook",
    help: "Addresses that a pool can give to requests that name none, by family; absent for a pool that is reserved whole",
    labels: ["pool", "family"],
  },
  berth_pool_addresses: {
    type: "gauge",
    by: "webhook",
    help: "Addresses of a pool by family and state: held, cooling (released, not given out again yet), block (in blocks of nodes, which give them to pods that ask for nothing), withheld (from requests that do not name it, by spec.reserved, or in use outside of Berth) or free; the sum is the capacity",
    labels: ["pool", "family", "state"],
  },
  berth_pool_blocks: {
    type: "gauge",
    by: "webhook",
    help: "Blocks of a pool by family and state: owned by a node, cooling (returned, not given out again yet) or free",
    labels: ["pool", "family", "state"],
  },
  berth_blocks_short_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes that need a block of a pool that has none free; told by the replica that leads",
    labels: ["pool", "family"],
  },
  berth_cilium_short_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes of Cilium that need addresses of pools that have none free (cilium.ipam); told by the replica that leads",
    labels: [],
  },
  berth_cilium_foreign_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes whose CiliumNode has CIDRs of no pool (cilium.ipam): somebody else writes CIDRs too; told by the replica that leads",
    labels: [],
  },
  berth_cilium_shared_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes whose CiliumNode has a CIDR that is another node's by the records (cilium.ipam); told by the replica that leads",
    labels: [],
  },
  berth_node_cidrs_missing_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes that wait for the CIDRs of their pods (nodeCIDRs.families); told by the replica that leads",
    labels: [],
  },
  berth_node_cidrs_shared_nodes: {
    type: "gauge",
    by: "webhook",
    help: "Nodes whose pods' CIDR shares addresses with what another node has; told by the replica that leads",
    labels: [],
  },
  berth_binding_delay_seconds: {
    type: "histogram",
    by: "webhook",
    help: "Time from when the claim of a scheduled pod could be bound until it was bound",
    labels: [],
    buckets: WAIT_SECONDS,
  },
  berth_pods_waiting: {
    type: "gauge",
    by: "webhook",
    help: "Scheduled pods whose claim could not be bound, by the code of the reason",
    labels: ["code"],
  },
  berth_leader: {
    type: "gauge",
    by: "webhook",
    help: "1 for the replica that collects garbage, 0 for the others",
    labels: [],
  },
  berth_reaper_passes_total: {
    type: "counter",
    by: "webhook",
    help: "Passes of the garbage collector by outcome (succeeded, failed)",
    labels: ["outcome"],
  },
  berth_reaper_pass_duration_seconds: {
    type: "histogram",
    by: "webhook",
    help: "Time of one pass of the garbage collector",
    labels: [],
    buckets: WAIT_SECONDS,
  },
  berth_reaper_released_total: {
    type: "counter",
    by: "webhook",
    help: "Reservations and claims that the garbage collector freed, by reason (orphan, cooled, retention)",
    labels: ["reason"],
  },
  berth_reaper_oldest_suspicion_seconds: {
    type: "gauge",
    by: "webhook",
    help: "How long the garbage collector has seen the same reservation without its claim, or claim without its reservation: the oldest; 0 if there is none",
    labels: [],
  },
  berth_certificate_expiry_timestamp_seconds: {
    type: "gauge",
    by: "webhook",
    help: "When a certificate in use expires, in seconds since 1970: serving, or authority if Berth has its own",
    labels: ["certificate"],
  },
  berth_queue_keys: {
    type: "gauge",
    by: "both",
    help: "Keys of a work queue by state: waiting, working, or later",
    labels: ["queue", "state"],
  },
  berth_queue_oldest_seconds: {
    type: "gauge",
    by: "both",
    help: "How long the oldest key of a work queue has been due without being done; 0 if there is none",
    labels: ["queue"],
  },
  berth_queue_wait_seconds: {
    type: "histogram",
    by: "both",
    help: "Time from when a key is due until work on it begins",
    labels: ["queue"],
    buckets: WAIT_SECONDS,
  },
  berth_queue_work_seconds: {
    type: "histogram",
    by: "both",
    help: "Time of the work on one key",
    labels: ["queue"],
    buckets: WAIT_SECONDS,
  },
  berth_queue_outcomes_total: {
    type: "counter",
    by: "both",
    help: "Work on keys by outcome: done, again, retry (it failed), rejected",
    labels: ["queue", "outcome"],
  },
  berth_watch_synced: {
    type: "gauge",
    by: "both",
    help: "1 once all objects of a kind have been listed, 0 before",
    labels: ["kind"],
  },
  berth_watch_silence_seconds: {
    type: "gauge",
    by: "both",
    help: "Time since the API server last sent anything about a kind: an event, a bookmark (one a minute) or a list",
    labels: ["kind"],
  },
  berth_watch_relists_total: {
    type: "counter",
    by: "both",
    help: "Full lists of a kind, including the first",
    labels: ["kind"],
  },
  berth_watch_interruptions_total: {
    type: "counter",
    by: "both",
    help: "Watches that ended too early, by the code of the fault; not those that the API server closes after their time",
    labels: ["kind", "code"],
  },
  berth_api_requests_total: {
    type: "counter",
    by: "both",
    help: "Calls to the API server by verb, resource (with its subresource) and HTTP status, or by the code of the fault if there was no answer",
    labels: ["verb", "resource", "code"],
  },
  berth_api_request_duration_seconds: {
    type: "histogram",
    by: "both",
    help: "Time of one call to the API server; of a watch, until it begins",
    labels: ["verb"],
    buckets: CALL_SECONDS,
  },
  berth_store_conflicts_total: {
    type: "counter",
    by: "both",
    help: "Writes that failed because the record had changed since it was read",
    labels: [],
  },
  berth_ready: {
    type: "gauge",
    by: "both",
    help: "1 if the process has loaded everything that it needs to decide, else 0",
    labels: [],
  },
  berth_build_info: {
    type: "gauge",
    by: "both",
    help: "1, with the version that is running",
    labels: ["component", "version"],
  },
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
    help: "Sandboxes of this node with addresses of a claim that is not bound to their pod: another pod may get these addresses",
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
