// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { Clock } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { POOLS } from "../../kube/api/resource.ts";
import type { UserInfo } from "../review/admission-review.ts";
import { isAllowed, KnownAccess, reviewAccess } from "./access-reviews.ts";
import type { ReadAccess, Subject } from "./disclosure.ts";

/** Whoever sends reviews chooses the names that are asked about: beyond, nobody may read. */
const MOST_ASKED = 16;
const ASK_MS = 2_000;

/** Asks the API server by SubjectAccessReview, and remembers the answer for a short time. */
export class ReviewedReadAccess implements ReadAccess {
  readonly #connection: Connection;
  readonly #known: KnownAccess; // by user and subject
  #asked = 0;

  constructor(connection: Connection, clock: Pick<Clock, "monotonic">) {
    this.#connection = connection;
    this.#known = new KnownAccess(clock);
  }

  async mayRead(user: UserInfo, subject: Subject): Promise<boolean> {
    const key = keyOf(user, subject);
    const known = this.#known.of(key);
    if (known !== undefined) return known;
    if (this.#asked >= MOST_ASKED) return false;
    this.#asked++;
    try {
      const allowed = await this.#review(user, subject);
      this.#known.remember(key, allowed);
      return allowed;
    } catch {
      return false; // the refusal stands, in fewer words
    } finally {
      this.#asked--;
    }
  }

  async #review({ username, uid, groups }: UserInfo, subject: Subject): Promise<boolean> {
    const { verb, resource, namespace } = subject;
    const group = resource.startsWith("ip") ? POOLS.group : "";
    const attributes = { verb, group, resource, namespace };
    const spec = { user: username, uid, groups, resourceAttributes: attributes };
    const answer = await reviewAccess(this.#connection, spec, ASK_MS);
    return answer.status === 201 && isAllowed(answer);
  }
}

/** Of a bounded length, whatever the names are. */
function keyOf({ username, uid, groups }: UserInfo, { verb, resource, namespace }: Subject): string {
  const user = JSON.stringify([username, uid, groups, verb, resource, namespace]);
  return createHash("sha256").update(user).digest("base64");
}
