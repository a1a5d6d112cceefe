// SPDX-License-Identifier: Apache-2.0
// Which of an account's rights its calls make use of, and which calls were forbidden to it.
import type { Answer, Call, Connection, Stream } from "../../kube/api/connection.ts";

const VERBS = { GET: "get", POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;
const FORBIDDEN = 403;

/** The connection of an account, which keeps book. */
export class BookedConnection implements Connection {
  /** `patch ciliumnodes.cilium.io/status`, as `rightsOf` names them. */
  readonly used = new Set<string>();
  readonly forbidden: string[] = [];
  readonly #inner: Connection;

  constructor(inner: Connection) {
    this.#inner = inner;
  }

  async call(call: Call): Promise<Answer> {
    const answer = await this.#inner.call(call);
    this.#note(call, answer.status);
    return answer;
  }

  async stream(call: Call, signal: AbortSignal): Promise<Stream | Answer> {
    const answer = await this.#inner.stream(call, signal);
    this.#note(call, "status" in answer ? answer.status : 200);
    return answer;
  }

  close(): void {
    this.#inner.close();
  }

  #note(call: Call, status: number): void {
    if (status === FORBIDDEN) this.forbidden.push(`${call.method} ${call.path}`);
    else this.used.add(rightFor(call));
  }
}

/** Of things of the whole cluster. */
function rightFor({ method, path, query = {} }: Call): string {
  const [, api, ...rest] = path.split("/");
  const [group, , resource = "", name, subresource] = api === "api" ? ["", ...rest] : rest;
  const all = "watch" in query ? "watch" : "list";
  const verb = method === "GET" && name === undefined ? all : VERBS[method];
  const whole = group === "" ? resource : `${resource}.${group}`;
  return `${verb} ${whole}${subresource === undefined ? "" : `/${subresource}`}`;
}
