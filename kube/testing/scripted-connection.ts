// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Answer, Call, Connection, Stream } from "../api/connection.ts";

/** What one watch is answered: lines, and then its end, nothing at all any more, or a broken connection. */
export type ScriptedResponse =
  | Answer
  | { readonly lines: readonly unknown[]; readonly after: "ends" | "is silent" | "breaks" };

/**
 * A connection that answers watches with what is written down, and every call with an empty list: for what a real API
 * server does too rarely.
 */
export class ScriptedConnection implements Connection {
  readonly #responses: ScriptedResponse[];
  /** What was asked, in order. */
  readonly queries: Readonly<Record<string, string>>[] = [];
  /** Which lists were asked for, in order. */
  readonly lists: Call[] = [];
  /** Of the list: how far the API server has come. */
  revision = "1000";

  constructor(...responses: readonly ScriptedResponse[]) {
    this.#responses = [...responses];
  }

  async call(call: Call): Promise<Answer> {
    this.lists.push(call);
    return { status: 200, body: { metadata: { resourceVersion: this.revision }, items: [] } };
  }

  async stream(call: Call, signal: AbortSignal): Promise<Stream | Answer> {
    this.queries.push(call.query ?? {});
    const response = this.#responses.shift() ?? { lines: [], after: "is silent" };
    return "status" in response ? response : { lines: play(response, signal) };
  }

  close(): void {}
}

async function* play(
  { lines, after }: Exclude<ScriptedResponse, Answer>,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  for (const line of lines) yield typeof line === "string" ? line : JSON.stringify(line);
  if (after === "ends") return;
  if (after === "is silent" && !signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  throw new BerthError("STORE_UNAVAILABLE", "the connection broke");
}
