// SPDX-License-Identifier: Apache-2.0
import { alarmOf } from "../../allocator/base/alarm.ts";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Metrics } from "../../allocator/base/ports.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  codeOf,
  errored,
  type Handler,
} from "./admission-review.ts";

/** One second less than the 10 s that the API server waits unless the configuration says otherwise. */
export const DEADLINE_MS = 9_000;

interface DeadlineOptions {
  /** Label of the metrics. */
  readonly route: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** As `Handler`, with the time that there is; it never rejects. */
export type DeadlineHandler = (
  request: AdmissionRequest,
  signal: AbortSignal,
  deadlineMs?: number,
) => Promise<AdmissionResponse>;

/**
 * The API server always gets a decision with its own uid back, whatever the handler does: throws, rejects, hangs
 * beyond the deadline, or answers something that is no response. Every decision is counted and timed.
 */
export function withDeadline(handler: Handler, options: DeadlineOptions): DeadlineHandler {
  const { log, clock, route } = options;
  return async (request, signal, deadlineMs = DEADLINE_MS) => {
    const started = clock.monotonic();
    const ends = new AbortController();
    const hangUp = () => ends.abort(signal.reason);
    // not AbortSignal.any, whose weak references cost each review more than this listener
    if (signal.aborted) hangUp();
    else signal.addEventListener("abort", hangUp, { once: true });
    const decision = decide(handler, request, ends.signal);
    const { promise: over, resolve } = Promise.withResolvers<"late">();
    const stop = alarmOf(clock, deadlineMs, () => resolve("late"));
    const first = await Promise.race([decision, over]);
    stop();
    signal.removeEventListener("abort", hangUp);
    const response = first === "late" ? tooLate(request.uid, deadlineMs) : answerTo(request, first, log);
    if (first === "late") {
      ends.abort(new BerthError("TIMED_OUT", "the deadline of the admission review is over"));
      log.error("admission handler exceeded its deadline", { ...about(request, route), ms: deadlineMs });
      // it may have reserved something after all, so its end is worth a line
      void decision.then((end) => {
        const ms = clock.monotonic() - started;
        log.warn("admission handler ended after its deadline", { ...about(request, route), ms, ...end });
      });
    }
    record(request, response, clock.monotonic() - started, options);
    return response;
  };
}

/** What became of a handler; `response` is unknown, because it may have been written in another language. */
type Decision = { readonly response: unknown } | { readonly error: unknown };

async function decide(handler: Handler, request: AdmissionRequest, signal: AbortSignal): Promise<Decision> {
  try {
    return { response: await handler(request, signal) };
  } catch (error) {
    return { error };
  }
}

function answerTo(request: AdmissionRequest, decision: Decision, log: Logger): AdmissionResponse {
  const { uid } = request;
  if ("error" in decision) {
    log.error("admission handler failed", { uid, error: decision.error });
    return explain(uid, decision.error);
  }
  if (isAnswer(decision.response, uid)) return decision.response;
  log.error("admission handler gave no answer to this request", { uid, response: decision.response });
  return internal(uid);
}

/** A response with another uid belongs to another request: correcting the uid would apply its patch to this one. */
function isAnswer(response: unknown, uid: string): response is AdmissionResponse {
  if (typeof response !== "object" || response === null) return false;
  if (!("uid" in response && response.uid === uid)) return false;
  return "allowed" in response && typeof response.allowed === "boolean" && isSendable(response);
}

function isSendable(response: object): boolean {
  try {
    JSON.stringify(response);
    return true;
  } catch {
    return false;
  }
}

/** A fault's own words, unless it is a defect of Berth: nobody outside can do anything about that. */
function explain(uid: string, error: unknown): AdmissionResponse {
  if (!(error instanceof BerthError) || error.code === "INTERNAL") return internal(uid);
  return errored(uid, error.message, { code: error.code });
}

function internal(uid: string): AdmissionResponse {
  return errored(uid, `internal error of berth; the log of its webhook has it under uid ${uid}`, {
    code: "INTERNAL",
  });
}

function tooLate(uid: string, deadlineMs: number): AdmissionResponse {
  const message = `berth did not decide within ${Math.round(deadlineMs / 100) / 10} s; try again, the log of its webhook has it under uid ${uid}`;
  return errored(uid, message, { code: "TIMED_OUT" });
}

/** Counting must not cost the answer. */
function record(
  request: AdmissionRequest,
  response: AdmissionResponse,
  ms: number,
  options: DeadlineOptions,
): void {
  const { route, log, metrics } = options;
  const outcome = outcomeOf(response);
  const code = codeOf(response);
  try {
    metrics.increment("berth_admission_reviews_total", {
      route,
      operation: request.operation,
      outcome,
      code,
    });
    metrics.observe("berth_admission_duration_seconds", ms / 1000, { route });
  } catch (error) {
    log.error("admission review could not be counted", { uid: request.uid, error });
  }
  log.debug("admission review decided", { ...about(request, route), outcome, code, ms });
}

function outcomeOf(response: AdmissionResponse): "allowed" | "patched" | "denied" | "errored" {
  if (response.allowed) return response.patch === undefined ? "allowed" : "patched";
  return (response.status?.code ?? 500) >= 500 ? "errored" : "denied";
}

function about({ uid, namespace, name }: AdmissionRequest, route: string) {
  return { uid, route, namespace, name };
}
