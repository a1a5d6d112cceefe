// SPDX-License-Identifier: Apache-2.0
// What the API server says of who may do what (SubjectAccessReview, authorization.k8s.io/v1), and for how long it counts.
import type { Clock } from "../../allocator/base/ports.ts";
import type { Answer, Connection } from "../../kube/api/connection.ts";

/** A role that was just given is waited for by somebody; one that was taken away may last a little. */
const ALLOWED_MS = 30_000;
const REFUSED_MS = 5_000;
const MOST_KNOWN = 10_000;

const REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/** Answers of the API server, each for a short time. */
export class KnownAccess {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #known = new Map<string, { readonly allowed: boolean; readonly until: number }>(); // who and what -> answer

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Undefined: it was not asked, or too long ago. */
  of(key: string): boolean | undefined {
    const known = this.#known.get(key);
    return known !== undefined && this.#clock.monotonic() < known.until ? known.allowed : undefined;
  }

  remember(key: string, allowed: boolean): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(key, { allowed, until: this.#clock.monotonic() + (allowed ? ALLOWED_MS : REFUSED_MS) });
  }
}

/** `spec` as the kind has it. Throws BerthError STORE_UNAVAILABLE or TIMED_OUT when the API server does not answer. */
export async function reviewAccess(
  connection: Connection,
  spec: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): Promise<Answer> {
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec };
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  return await connection.call({ method: "POST", path: REVIEWS, body, ...limit });
}

/** Of an answer 201. */
export function isAllowed({ body }: Answer): boolean {
  return (body as { status?: { allowed?: unknown } }).status?.allowed === true;
}
