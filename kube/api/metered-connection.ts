// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Metrics } from "../../allocator/base/ports.ts";
import type { Call, Connection } from "./connection.ts";

/** The connection, with every call counted and timed. Repeats within a call (a 429, a new token) are part of it. */
export function withRequestMetrics(
  connection: Connection,
  metrics: Metrics,
  clock: Pick<Clock, "monotonic">,
): Connection {
  const count = async <T extends object>(call: Call, stream: boolean, answer: Promise<T>): Promise<T> => {
    const began = clock.monotonic();
    const verb = verbOf(call, stream);
    let code = "INTERNAL";
    try {
      const given = await answer;
      code = "status" in given ? String(given.status) : "200";
      return given;
    } catch (error) {
      if (error instanceof BerthError) code = error.code;
      throw error;
    } finally {
      metrics.increment("berth_api_requests_total", { verb, resource: resourceIn(call.path), code });
      metrics.observe("berth_api_request_duration_seconds", (clock.monotonic() - began) / 1000, { verb });
    }
  };
  return {
    call: (call) => count(call, false, connection.call(call)),
    stream: (call, signal) => count(call, true, connection.stream(call, signal)),
    close: () => connection.close(),
  };
}

const VERBS = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

/** As Kubernetes calls it in roles and audit logs. */
function verbOf({ method, path }: Call, stream: boolean): string {
  if (stream) return "watch";
  if (method !== "GET") return VERBS[method];
  return partsOf(path).name === undefined ? "list" : "get";
}

/** `ipclaims`, `ipclaims/status`; `other` for what is no object: discovery, /readyz. No name of an object is in it. */
function resourceIn(path: string): string {
  const { plural, subresource } = partsOf(path);
  if (plural === undefined) return "other";
  return subresource === undefined ? plural : `${plural}/${subresource}`;
}

interface Parts {
  readonly plural?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** `/api/v1/...` or `/apis/group/version/...`, then `namespaces/<name>/` for an object in one. */
function partsOf(path: string): Parts {
  const found = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(.+)$/.exec(path)?.[1];
  const words = found?.split("/") ?? [];
  const [plural, name, subresource] = words[0] === "namespaces" && words.length > 2 ? words.slice(2) : words;
  return { plural, name, subresource };
}
