// SPDX-License-Identifier: Apache-2.0
import { type Definition, WAIT_SECONDS } from "./metric-shape.ts";

/** An admission in memory takes about 1 ms; the API server gives up after 10 s unless told otherwise. */
const ADMISSION_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What a replica of the webhook exposes, and no agent. */
export const WEBHOOK_METRICS = {
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
  berth_blocks_refused_pools: {
    type: "gauge",
    by: "webhook",
    help: "1 for each pool whose blocks, or CIDRs of nodes, could not be given when that was tried last (a policy refuses them, or a record cannot be read); told by the replica that leads",
    labels: ["pool"],
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
} as const satisfies Record<string, Definition>;
