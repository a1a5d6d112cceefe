// SPDX-License-Identifier: Apache-2.0
// Containers whose addresses cni-ipam-etcd gave: `berthctl import` keeps each address by a claim of its own until the DEL of
// the container comes to any host.
import type { RecordCache } from "../../../../allocator/cache/cache.ts";
import type { Context } from "../../../../allocator/cache/context.ts";
import { type Address, familyOf } from "../../../../allocator/ip/address.ts";
import { release } from "../../../../allocator/lifecycle/release.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import { importedNameOf } from "../../../../allocator/model/container-claim.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import type { AttachmentKey, AttachRequest, SandboxNotice } from "../claim-source.ts";
import type { FormerAddresses } from "../new-claim.ts";
import { containerName, isContainerName, NAMESPACE } from "./container-name.ts";

type Container = Pick<AttachmentKey, "network" | "containerID">;

/** The key of a claim of an import, and what its name begins with. */
const OF_IMPORT = /^default\/(c-.*-[0-9a-f]{16})-[0-9a-f-]+$/;

/** What the names of its claims begin with. cni-ipam-etcd did not write down which interface it was. */
function formerName({ network, containerID }: Container): string {
  return containerName({ network, containerID, interface: "" }).name;
}

/** The name of the claim of one address that it gave. */
export function formerClaimName(container: Container, address: Address): string {
  return importedNameOf(formerName(container), address);
}

/** Whether a claim is one of an import that keeps the address, and its container has not begun again with it. */
export function isLeftOfImport({ name, handMade, binding }: Claim, address: Address): boolean {
  const end = importedNameOf("", address);
  const isNamedSo = name.endsWith(end) && isContainerName(name.slice(0, -end.length));
  return isNamedSo && handMade === true && binding === undefined;
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

/** What a claim of an import kept that is released by now. */
interface Freed {
  readonly name: string;
  readonly address: Address;
}

/** By as much the clocks of two hosts may differ. */
const CLOCKS_DIFFER_MS = 600_000;

/** Claims that imports have made, by container: a view would have to be searched for them with each ADD. */
export class FormerClaims {
  readonly #keys = new Map<string, Set<string>>(); // what their names begin with -> claims
  readonly #freed = new Map<string, readonly Freed[]>(); // name of a container's claim -> what was freed for it
  readonly #bootedAt: number;

  /** `bootedAt`: milliseconds since 1970; 0, it is not known. */
  constructor(view: Pick<RecordCache, "claims" | "onChange">, bootedAt: number) {
    this.#bootedAt = bootedAt;
    for (const { key } of view.claims()) this.#note(key, true);
    view.onChange("claim", (key, now) => this.#note(key, now !== undefined));
  }

  of(container: Container): readonly string[] {
    return [...(this.#keys.get(formerName(container)) ?? [])];
  }

  /**
   * Whether the claim is older than this host's boot, so that no container of before is up here. Which interface of it has the address
   * nobody wrote down: as long as it may be up, another interface of it neither takes the address nor frees it.
   */
  isOfEarlierBoot({ createdAt }: Stored<"claim">): boolean {
    return createdAt + CLOCKS_DIFFER_MS < this.#bootedAt;
  }

  /** By an ADD before this one, which may have broken off before it had that again. */
  freedFor(container: AttachmentKey): readonly Freed[] {
    return this.#freed.get(containerName(container).name) ?? [];
  }

  noteFreed(container: AttachmentKey, freed: readonly Freed[]): void {
    const { name } = containerName(container);
    if (freed.length > 0) this.#freed.set(name, freed);
    else this.#freed.delete(name);
  }

  #note(key: string, isThere: boolean): void {
    const [, name] = OF_IMPORT.exec(key) ?? [];
    if (name === undefined) return;
    const keys = this.#keys.get(name) ?? new Set();
    if (isThere) keys.add(key);
    else keys.delete(key);
    if (keys.size > 0) this.#keys.set(name, keys);
    else this.#keys.delete(name);
  }
}

/**
 * Gives back what it had in the network: all, as the end of a container that was never attached here is told; or what it cannot have
 * any more. Throws BerthError; then it is told again.
 */
export async function releaseFormer(
  context: Context,
  former: FormerClaims,
  { container, isKnown }: { readonly container: AttachmentKey; readonly isKnown: boolean },
): Promise<void> {
  former.noteFreed(container, []);
  for (const key of former.of(container)) {
    const seen = await context.store.get("claim", key);
    if (seen === undefined || (isKnown && !former.isOfEarlierBoot(seen))) continue;
    // one that a container of that name got since is that one's
    if (seen.record.handMade === true && seen.record.binding === undefined) await release(context, seen);
  }
}

/**
 * Gives back what a container had that begins anew after a boot: it is to have that again, and nobody else told of its end.
 * One address of each family, of the pools that serve it, and of what the runtime asks for. Undefined: there is none.
 */
export async function freeFormer(
  context: Context,
  former: FormerClaims,
  { attachment, pools, families, addresses: asked }: AttachRequest,
): Promise<FormerAddresses | undefined> {
  const freed = [...former.freedFor(attachment)];
  for (const key of former.of(attachment)) {
    const seen = await context.store.get("claim", key);
    const [address] = seen?.record.addresses ?? [];
    if (seen === undefined || address === undefined || !isLeftOfImport(seen.record, address)) continue;
    if (!former.isOfEarlierBoot(seen)) continue;
    const family = familyOf(address);
    const suits =
      pools.includes(context.view.poolOf(address)?.name ?? "") &&
      families?.includes(family) !== false &&
      (asked.length === 0 || asked.includes(address)) &&
      freed.every((other) => familyOf(other.address) !== family);
    if (!suits || (await release(context, seen)) !== "released") continue;
    freed.push({ name: seen.record.name, address });
    former.noteFreed(attachment, freed);
  }
  if (freed.length === 0) return undefined;
  const addresses = asked.length > 0 ? asked : freed.map(({ address }) => address);
  return { claims: freed.map(({ name }) => name), addresses };
}
