// SPDX-License-Identifier: Apache-2.0
import { type Webhook, withWebhook } from "../apply/review-client.ts";
import { type EmbeddedBackend, withEmbeddedBackend } from "../backend/embedded-backend.ts";
import type { CommandContext } from "../terminal/command.ts";

/** Opens what reviews objects for `work`, and where they are afterwards: a stack's webhook and its file, or etcd. */
export async function withReviews<T>(
  context: CommandContext & { readonly waitMs: number },
  work: (webhook: Webhook, backend: EmbeddedBackend) => Promise<T>,
): Promise<T> {
  if (context.etcd === undefined) {
    return await withWebhook(context, (webhook) =>
      withEmbeddedBackend(context, "read", (backend) => work(webhook, backend)),
    );
  }
  // The rules take longer to load than the rest of berthctl takes to run.
  const { withEtcdReviews } = await import("../embedded/etcd-reviews.ts");
  return await withEtcdReviews(context, context.etcd, work);
}
