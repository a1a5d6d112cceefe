// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import type { Client, Selection } from "../api/client.ts";
import { parsedWithoutManagedFields } from "../api/managed-fields.ts";
import { asItem, type KubeItem } from "../api/resource.ts";
import { needsRelist, type Status, statusOf, toBerthError } from "../api/status.ts";

/** What one watch says. A bookmark carries no object, only how far it has come. */
export type WatchEvent =
  | { readonly type: "put" | "gone"; readonly item: KubeItem; readonly resourceVersion: string }
  | { readonly type: "bookmark"; readonly initialEventsEnd: boolean; readonly resourceVersion: string };

/** The watch cannot go on from where it was: everything must be listed again. */
export class GoneError extends Error {
  override readonly name = "Expired";
}

/** The API server does not do what was asked of it: no WatchList, or none of this resource. */
export class UnsupportedError extends Error {
  override readonly name = "NotOffered";
}

interface WatchOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly selection: Selection;
  readonly query: Readonly<Record<string, string>>;
  /** A watch that is silent for longer is dead: bookmarks come every minute. */
  readonly idleMs: number;
}

/**
 * One watch, to its end: the API server closes it after its time, or `signal` aborts. Throws Expired, NotOffered, and
 * BerthError STORE_UNAVAILABLE or TIMED_OUT for anything else, a line that is not JSON among it.
 */
export async function* watchOnce(
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void, void> {
  const { client, selection, query } = options;
  const cut = new AbortController();
  const ends = AbortSignal.any([signal, cut.signal]);
  const answer = await client.connection.stream(client.watchCall(selection, query), ends);
  if ("status" in answer) {
    if (needsRelist(statusOf(answer.body, answer.status)))
      throw new GoneError(`watch of ${client.resource.plural}`);
    const fault = toBerthError(answer, `watch ${client.resource.plural}`);
    throw answer.status === 400 || answer.status === 422 ? new UnsupportedError(fault.message) : fault;
  }
  const silence = attend(options, cut);
  try {
    for await (const line of answer.lines) {
      silence.heard();
      const event = eventOf(line, client.resource.plural);
      if (event !== undefined) yield event;
      silence.waits();
    }
  } catch (error) {
    throw silence.faultOf(error);
  } finally {
    await silence.end();
  }
}

/** Cuts the watch when no line comes for too long. Time that whoever reads them takes does not count. */
function attend({ clock, idleMs, client }: WatchOptions, cut: AbortController) {
  const over = new AbortController();
  let waitingSince: number | undefined = clock.monotonic();
  let silent = false;
  const attending = (async () => {
    while (!over.signal.aborted) {
      const since = waitingSince ?? clock.monotonic();
      await clock.sleep(since + idleMs - clock.monotonic(), over.signal);
      if (waitingSince === undefined || clock.monotonic() < waitingSince + idleMs) continue;
      silent = true;
      cut.abort();
      return;
    }
  })();
  return {
    heard: () => {
      waitingSince = undefined;
    },
    waits: () => {
      waitingSince = clock.monotonic();
    },
    faultOf: (error: unknown) => {
      if (!silent) return error;
      const words = `the watch of ${client.resource.plural} was silent for ${idleMs / 1000} s`;
      return new BerthError("TIMED_OUT", words, { cause: error });
    },
    end: () => {
      over.abort();
      return attending;
    },
  };
}

/** Undefined for a type of event that is not known here. */
function eventOf(line: string, plural: string): WatchEvent | undefined {
  const { type, object } = parsed(line, plural);
  if (type === "ERROR") throw failureOf(statusOf(object, 500), plural);
  if (type === "BOOKMARK") {
    const { metadata } = object as { metadata?: { resourceVersion?: string; annotations?: object } };
    const { resourceVersion = "", annotations = {} } = metadata ?? {};
    return {
      type: "bookmark",
      initialEventsEnd: "k8s.io/initial-events-end" in annotations,
      resourceVersion,
    };
  }
  if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED") return undefined;
  const item = asItem(object);
  const { resourceVersion } = item.metadata;
  return { type: type === "DELETED" ? "gone" : "put", item, resourceVersion };
}

function parsed(line: string, plural: string): { type?: unknown; object?: unknown } {
  try {
    return (parsedWithoutManagedFields(line) ?? {}) as { type?: unknown; object?: unknown };
  } catch (error) {
    const words = `the watch of ${plural} sent what is not JSON: ${messageOf(error)}`;
    throw new BerthError("STORE_UNAVAILABLE", words, { cause: error });
  }
}

function failureOf(status: Status, plural: string): Error {
  if (needsRelist(status)) return new GoneError(`watch of ${plural}: ${status.message}`);
  return new BerthError(
    status.reason === "Timeout" ? "TIMED_OUT" : "STORE_UNAVAILABLE",
    `the API server ended the watch of ${plural} with ${status.code}: ${status.message}`,
  );
}
