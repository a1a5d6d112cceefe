// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import { openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { codeOf, type Route } from "../../webhook/review/admission-review.ts";
import type { Webhook } from "../apply/review-client.ts";
import { contextOn } from "../backend/backend.ts";
import { type EmbeddedBackend, loadCache } from "../backend/embedded-backend.ts";
import { withEtcd } from "../backend/etcd-backend.ts";
import type { UnreadRecords } from "../backend/unread-records.ts";
import type { CommandContext } from "../terminal/command.ts";
import type { EtcdTarget } from "../terminal/target.ts";

const PATIENCE_MS = 30_000;
/** What hosts without Kubernetes share. Of pods and workloads no other host would know. */
const SHARED: ReadonlySet<Route> = new Set(["/validate/pools", "/validate/claims"]);

/** Reviews in this process, by the rules of every webhook, of what is kept in etcd. */
export async function withEtcdReviews<T>(
  { io, user }: CommandContext,
  target: EtcdTarget,
  work: (webhook: Webhook, backend: EmbeddedBackend) => Promise<T>,
): Promise<T> {
  return await withEtcd(io, target, async ({ store, unread }) => {
    const database = openDatabase(":memory:");
    try {
      const admitted = openAdmittedObjects(database); // of nothing: nobody keeps objects beside the records
      const { uuid } = io;
      const enqueueForGc = () => {}; // a host that runs looks at every claim soon
      /** By the records as they are now: the object before may have been a pool. */
      const handlersNow = async () => {
        const view = await loadCache(store, { ofContainers: true });
        const context = contextOn(store, view, io);
        return createHandlers({
          ...{ context, inventory: admitted, embedded: admitted, enqueueForGc },
          onHosts: true,
        });
      };
      const webhook: Webhook = {
        async review(route, input) {
          if (!SHARED.has(route)) throw notShared(input.kind.kind);
          const userInfo = { username: user, uid: "", groups: [] };
          const request = { uid: uuid(), ...input, subResource: "", userInfo };
          const handlers = await handlersNow();
          if (route === "/validate/pools") refuseUnread(unread);
          const answer = await handlers[route](request, AbortSignal.timeout(PATIENCE_MS));
          const denied = answer.allowed ? "" : (answer.status?.message ?? "refused without a reason");
          const isFault = !answer.allowed && (answer.status?.code ?? 0) >= 500;
          return { denied, code: codeOf(answer), isFault, patch: [], warnings: answer.warnings ?? [] };
        },
      };
      const none = { attachments: () => [], journal: () => ({ journal: "", position: 0 }) };
      return await work(webhook, { store, admitted, ...none });
    } finally {
      database.close();
    }
  });
}

/** What a pool may be depends on every record: one that cannot be read may be another pool, or an address of this one. */
function refuseUnread(unread: UnreadRecords): void {
  const [first, ...more] = unread.all();
  if (first === undefined) return;
  const rest = more.length === 0 ? "" : ` (and ${more.length} more: berthctl check)`;
  throw new BerthError(
    "STATE_CORRUPT",
    `pools are not changed before all records can be read: ${first.why}${rest}`,
  );
}

function notShared(kind: string): BerthError {
  const words = `a ${kind} cannot be kept in etcd, where hosts without Kubernetes share IPPools and IPClaims; start a container, and its host gives it an address`;
  return new BerthError("CONFIG_INVALID", words);
}
