// SPDX-License-Identifier: Apache-2.0
// Whether a sandbox may have what a claim holds, and what whoever lets it go all the same cannot know.

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { tellOfEnd, unseenEnd } from "../../ipam-plugin/agent/journal/unseen-end.ts";
import type { Backend } from "../backend/backend.ts";
import { containerOf, describeHolder } from "../backend/container-words.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import type { Io } from "../terminal/command.ts";
import { isAlive } from "./watched-host.ts";

/** How a person says that it is known better. */
export interface Force {
  readonly force: boolean;
  /** Also of what a host has that serves. */
  readonly evenIfAlive: boolean;
}

/** On a data folder the journal is asked too: it knows of sandboxes before their claim's status does. */
export async function busy(
  { key, record }: Stored<"claim">,
  { uses, world, place }: Backend,
): Promise<Refusal | undefined> {
  const sandbox = (await uses([record])).find(({ claim }) => claim === key);
  if (sandbox === undefined && isDetached(record)) return undefined;
  const pod = record.binding?.podName || sandbox?.pod?.name || "unknown";
  const node = record.binding?.node || sandbox?.node || "this one";
  const container = containerOf(record, place);
  const named = place === "etcd" ? pod : `pod ${pod}`; // of a runtime that says a name that is the container's
  const whose = container === undefined ? named : describeHolder(record, place);
  const where = place === "etcd" ? "host" : "node";
  // invariant 3b; whoever may not read Nodes cannot know
  if (await ifAllowed(() => world.fenced(node), false)) return undefined;
  const isGone = world.podIsGone?.(record.namespace, pod) === true;
  const end = isGone ? "the pod is deleted: stop its container first" : "delete the pod first";
  const first = place === "etcd" ? endContainer(record, node) : end;
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} (${sayMacs(record.addresses.join(", "))}) is bound to ${whose} on ${where} ${node}, whose sandbox may be alive; ` +
      `${first}, or use --force if you know that its sandbox is gone`,
    { claim: key, pod },
  );
}

/** For one whose end its host does not see it is no use to wait, and to release its claim keeps that host from serving. */
function endContainer({ status: { attachment } }: Claim, node: string): string {
  const unseen = attachment && unseenEnd(attachment.netns);
  const first = "stop the container first";
  return unseen === undefined
    ? first
    : `${first}, and once it has ended, which its host does not see (${unseen}), ${tellOfEnd(node)}`;
}

/** It may be let go. */
export interface NotHeld {
  /** By force, in an etcd that hosts share, where no journal of a host can be read, in words; undefined: no host has it in use. */
  readonly forced: string | undefined;
}

/**
 * Why it is not let go: its sandbox may be alive, or, by force, the host that has it serves and was not asked. Such a host gives no address from
 * its agent's next start on, since etcd lacks what one of its containers has.
 */
export async function held(
  seen: Stored<"claim">,
  backend: Backend,
  { force, evenIfAlive }: Force,
  io: Pick<Io, "clock" | "stderr">,
): Promise<Refusal | NotHeld> {
  const refusal = force && backend.place !== "etcd" ? undefined : await busy(seen, backend);
  if (refusal === undefined) return { forced: undefined };
  if (!force) return refusal;
  const { key, record } = seen;
  const node = hostOf(record);
  if (evenIfAlive || node === "" || !(await isAlive(backend, node, io))) return { forced: forcedUse(seen) };
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} (${sayMacs(record.addresses.join(", "))}) is bound to ${describeHolder(record, backend.place)} on host ${node}, which is alive: it has written to etcd while it was watched; ` +
      `${endContainer(record, node)}, or use --force --even-if-alive if you know that the container is gone`,
    { claim: key },
  );
}

function hostOf({ binding, status: { attachment } }: Claim): string {
  return binding?.node || attachment?.node || "";
}

function forcedUse({ key, record }: Stored<"claim">): string {
  const { attachment } = record.status;
  const node = hostOf(record);
  const unseen = attachment && unseenEnd(attachment.netns);
  const alone =
    unseen === undefined ? "" : `, which it does not see by itself (${unseen}): ${tellOfEnd(node)}`;
  const both = `while that runs, whoever is given ${record.addresses.join(", ")} next has it, too`;
  return `host ${node} was not asked whether the container of claim ${key} has ended: ${both}; and from its agent's next start on this host gives no address until it knows of that end${alone}`;
}
