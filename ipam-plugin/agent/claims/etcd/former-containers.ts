// SPDX-License-Identifier: Apache-2.0
// Containers whose addresses cni-ipam-etcd gave: `berthctl import` keeps each address by a claim of its own until the DEL of
// the container comes to any host.
import type { Context } from "../../../../allocator/cache/context.ts";
import type { Address } from "../../../../allocator/ip/address.ts";
import { release } from "../../../../allocator/lifecycle/release.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import type { AttachmentKey, SandboxNotice } from "../claim-source.ts";
import { containerName, isContainerName, NAMESPACE } from "./container-name.ts";

type Container = Pick<AttachmentKey, "network" | "containerID">;

/** What the names of its claims begin with. cni-ipam-etcd did not write down which interface it was. */
function formerName({ network, containerID }: Container): string {
  return containerName({ network, containerID, interface: "" }).name;
}

/** The name of the claim of one address that it gave. */
export function formerClaimName(container: Container, address: Address): string {
  return `${formerName(container)}-${asName(address)}`;
}

/** Whether a claim is one of an import that keeps the address, and its container has not begun again with it. */
export function isLeftOfImport({ name, handMade, binding }: Claim, address: Address): boolean {
  const end = `-${asName(address)}`;
  const isNamedSo = name.endsWith(end) && isContainerName(name.slice(0, -end.length));
  return isNamedSo && handMade === true && binding === undefined;
}

function asName(address: Address): string {
  return address.replaceAll(/[.:]/g, "-");
}

/** Whom the DEL is about of a container that was never attached here. */
export function formerNotice(container: AttachmentKey): SandboxNotice {
  const name = formerName(container);
  const pod = { namespace: NAMESPACE, name, uid: "" };
  return { claim: `${NAMESPACE}/${name}`, pod, attachment: container };
}

export function isFormerNotice({ claim, attachment }: SandboxNotice): boolean {
  return claim === formerNotice(attachment).claim;
}

/** Gives back all that it had in the network. Throws BerthError; then it is told again. */
export async function releaseFormer(context: Context, container: Container): Promise<void> {
  const own = `${NAMESPACE}/${formerName(container)}-`;
  const keys = [...context.view.claims()].map(({ key }) => key).filter((key) => key.startsWith(own));
  for (const key of keys) {
    const seen = await context.store.get("claim", key);
    // one that a container of that name got since is that one's
    if (seen?.record.handMade === true && seen.record.binding === undefined) await release(context, seen);
  }
}
