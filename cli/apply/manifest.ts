// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { formatDuration } from "../../allocator/base/go-duration.ts";
import type { PoolUsage } from "../../allocator/cache/pool-usage.ts";
import { parseCidr } from "../../allocator/ip/address.ts";
import type { BlockStatus } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { phaseOf } from "../../allocator/model/phase.ts";
import { parseStoredPool } from "../../allocator/pool/pool.ts";
import { figuresOf } from "../../allocator/pool/pool-figures.ts";
import { blockName, reservationName } from "../../allocator/store/codec.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import type { AttachmentUse } from "../backend/attachment-report.ts";
import { timeOf } from "../terminal/output.ts";

/** `apiVersion` of Berth's own kinds. */
const API_VERSION = "berth.dev/v1alpha1";

/** A Kubernetes object as it is printed and sent. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** Several objects as kubectl prints them. */
export function listOf(items: readonly unknown[]): Manifest & { readonly items: readonly unknown[] } {
  return { apiVersion: "v1", kind: "List", metadata: {}, items };
}

function metadataOf(stored: Stored<Kind>, name: { name: string; namespace?: string }): Manifest["metadata"] {
  const { uid, revision, createdAt } = stored;
  return { ...name, uid, resourceVersion: revision, creationTimestamp: timeOf(createdAt) };
}

/** With its use as the status of a cluster's pool has it. */
export function poolManifest(stored: Stored<"pool">, use?: PoolUsage): Manifest {
  const manifest = {
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: metadataOf(stored, { name: stored.record.name }),
    spec: stored.record.spec,
  };
  if (use === undefined) return manifest;
  const parsed = parseStoredPool(stored.record);
  const figures = isRefusal(parsed) ? {} : figuresOf(parsed, use.byFamily);
  const bound = use.byFamily.IPv4.bound + use.byFamily.IPv6.bound;
  return { ...manifest, status: { reserved: use.reserved, bound, ...figures } };
}

export function claimManifest(stored: Stored<"claim">): Manifest {
  const { namespace, name, status, deleting: _, ...spec } = stored.record;
  const { retention, binding, retained, admittedAt, ...rest } = spec;
  const { ttlMs, ...choices } = retention;
  return {
    apiVersion: API_VERSION,
    kind: "IPClaim",
    metadata: metadataOf(stored, { name, namespace }),
    spec: {
      ...rest,
      retention: { ...choices, ttl: ttlMs === null ? null : formatDuration(ttlMs) },
      ...(binding === undefined ? {} : { binding: { ...binding, since: timeOf(binding.since) } }),
      ...(retained === undefined ? {} : { retained: { ...retained, since: timeOf(retained.since) } }),
      ...(admittedAt === undefined ? {} : { admittedAt: timeOf(admittedAt) }),
    },
    status: statusOf(stored.record),
  };
}

function statusOf(claim: Claim): unknown {
  const { attachment, message } = claim.status;
  return {
    phase: phaseOf(claim),
    ...(attachment === undefined ? {} : { attachment: { ...attachment, since: timeOf(attachment.since) } }),
    ...(message === undefined ? {} : { message }),
  };
}

export function reservationManifest(stored: Stored<"reservation">): Manifest {
  const { releasedAt, cooldownMs, ...rest } = stored.record;
  return {
    apiVersion: API_VERSION,
    kind: "IPReservation",
    metadata: metadataOf(stored, { name: reservationName(stored.record.address) }),
    spec: {
      ...rest,
      ...(releasedAt === undefined ? {} : { releasedAt: timeOf(releasedAt) }),
      ...(cooldownMs === undefined ? {} : { cooldown: formatDuration(cooldownMs) }),
    },
  };
}

export function blockManifest(stored: Stored<"block">): Manifest {
  const { recalledAt, releasedAt, status, ...rest } = stored.record;
  return {
    apiVersion: API_VERSION,
    kind: "IPBlock",
    metadata: metadataOf(stored, { name: nameOfBlock(stored) }),
    spec: {
      ...rest,
      ...(recalledAt === undefined ? {} : { recalledAt: timeOf(recalledAt) }),
      ...(releasedAt === undefined ? {} : { releasedAt: timeOf(releasedAt) }),
    },
    ...(status === undefined ? {} : { status: blockStatusOf(status) }),
  };
}

function blockStatusOf({ returnedAt, ...rest }: BlockStatus): object {
  return { ...rest, ...(returnedAt === undefined ? {} : { returnedAt: timeOf(returnedAt) }) };
}

/** As it is called in Kubernetes. */
export function nameOfBlock({ key }: Stored<"block">): string {
  const cidr = parseCidr(key);
  return cidr === undefined ? key : blockName(cidr);
}

/** An attachment is no API object of its own; it is printed as if it were one. */
export function attachmentManifest(use: AttachmentUse, node: string): Manifest {
  const { scope, containerID, source, pod, claim, attachedAt, netns, result } = use;
  return {
    apiVersion: API_VERSION,
    kind: "Attachment",
    metadata: { name: `${containerID || pod?.name}.${use.interface}`, creationTimestamp: timeOf(attachedAt) },
    spec: {
      node,
      ...(scope.network === "" ? {} : { network: scope.network }),
      ...(containerID === "" ? {} : { containerID }),
      interface: use.interface,
      ...(netns === "" ? {} : { netns }),
      source,
      ...(pod === undefined ? {} : { pod }),
      ...(claim === undefined ? {} : { claim }),
      addresses: result.addresses.map(({ address }) => address),
    },
  };
}
