// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage } from "node:http";
import { alarmOf } from "../../allocator/base/alarm.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { type AdmissionRequest, parseReview } from "../review/admission-review.ts";
import type { DecodeQueue } from "../review/decode-queue.ts";
import type { Busy, Place } from "../review/intake.ts";
import { BODY_LIMIT, type GivenUp, readBody, uidFromPrefix } from "../review/request-body.ts";

/** What is no review, and how it is answered. */
export interface Unread {
  readonly kind: "unreadable";
  readonly uid: string;
  readonly why: string;
  /** In the review; `status` is the HTTP status of the answer. */
  readonly httpCode: number;
  readonly status: number;
  readonly apiVersion?: string;
  /** Nothing more of it is read. */
  readonly cutOff?: boolean;
}

type ReadReview =
  | { readonly kind: "review"; readonly request: AdmissionRequest }
  | { readonly kind: "lost" }
  | { readonly kind: "busy"; readonly whose: Busy }
  | Unread;

/**
 * An API server and berthctl say how long a body is. In chunks, each of them may be a byte that is six on the way, and up to 64 KiB of such
 * are parsed before anything can be done about it.
 */
export const IN_CHUNKS: Unread = {
  ...{ kind: "unreadable", uid: "", httpCode: 411, status: 411, cutOff: true },
  why: "the body must come with a Content-Length, and not in chunks",
};

/** An API server sends a body at once; less than this is left to decide in, whatever `timeout` says. */
const BODY_MS = 5_000;

/** Reads the review that a request carries. `late` aborts by itself when its time is over. */
export async function readReview(
  request: IncomingMessage,
  by: {
    readonly deadlineMs: number;
    readonly late: AbortController;
    readonly place: Place;
    readonly queue: DecodeQueue;
    readonly clock: Clock;
  },
): Promise<ReadReview> {
  const { late, place, clock } = by;
  const json = isPlainJson(request);
  const bodyMs = Math.min(by.deadlineMs, BODY_MS);
  const stop = alarmOf(clock, bodyMs, () => late.abort("slow" satisfies GivenUp));
  // of what is no JSON nothing but the beginning is kept, for the uid that may stand there
  const limit = json ? BODY_LIMIT : 0;
  const body = await readBody(request, { limit, place, signal: late.signal });
  stop();
  if (body.kind === "lost" || body.kind === "busy") return body;
  const bytes = body.kind === "whole" ? body.bytes : body.prefix;
  const sent = uidFromPrefix(bytes);
  const unreadable = (httpCode: number, why: string): Unread => {
    return { kind: "unreadable", uid: sent, why, httpCode, status: httpCode };
  };
  if (body.kind === "slow") return unreadable(408, `the body did not come within ${bodyMs / 1000} s`);
  if (body.kind === "in pieces") {
    const why = "the body comes in pieces of so few bytes that they cost more than it is worth";
    return { ...unreadable(400, why), cutOff: true };
  }
  if (!json) return unreadable(415, "the body must be application/json in UTF-8 and not compressed");
  if (body.kind === "too large") return unreadable(413, `the body is larger than ${BODY_LIMIT} bytes`);
  place.complete();
  const decoded = await by.queue.decode(bytes);
  if (decoded.kind === "unreadable") return unreadable(400, `the body cannot be read: ${decoded.why}`);
  const parsed = parseReview(decoded.value);
  if ("request" in parsed) return { kind: "review", request: parsed.request };
  const { invalid, uid, apiVersion } = parsed;
  return { kind: "unreadable", uid, why: invalid, httpCode: 400, status: uid === "" ? 400 : 200, apiVersion };
}

const PLAIN_JSON = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

function isPlainJson({ headers }: IncomingMessage): boolean {
  const encoding = headers["content-encoding"] ?? "identity";
  return PLAIN_JSON.test(headers["content-type"] ?? "") && encoding.toLowerCase() === "identity";
}
