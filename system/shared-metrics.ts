// SPDX-License-Identifier: Apache-2.0
import { type Definition, WAIT_SECONDS } from "./metric-shape.ts";

/** A call of the API server: it is waited for 10 s at most. */
const CALL_SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What a replica of the webhook and the agent of a node expose, each of itself. */
export const SHARED_METRICS = {
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
} as const satisfies Record<string, Definition>;
