// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { AttachmentKey, PodRef } from "../claim-source.ts";

/** Without Kubernetes there is one namespace. */
export const NAMESPACE = "default";
/** As much of an id as tools show. */
const SHOWN = 12;
/** 64 bits: what differs in one character only has another one. */
const HASH_LENGTH = 16;
const OWN_NAME = /^c-.*-[0-9a-f]{16}$/;

/** Whether a name is one that `containerName` gives: of one interface of one container, whose ADDs come one by one. */
export function isContainerName(name: string): boolean {
  return OWN_NAME.test(name);
}

/**
 * Whom the address of one interface of one container is kept for. Two hosts may have a container of the same name, but
 * none of the same id.
 */
export function containerName({ network, containerID, interface: name }: AttachmentKey): PodRef {
  const hash = createHash("sha256").update(`${network}\0${containerID}\0${name}`).digest("hex");
  const shown = `${containerID.slice(0, SHOWN)}-${name}`.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-");
  return { namespace: NAMESPACE, name: `c-${shown}-${hash.slice(0, HASH_LENGTH)}`, uid: "" };
}
