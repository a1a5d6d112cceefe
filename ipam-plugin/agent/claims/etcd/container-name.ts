// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { claimNameOf } from "../../../../allocator/model/container-claim.ts";
import type { AttachmentKey, PodRef } from "../claim-source.ts";

/** Without Kubernetes there is one namespace. */
export const NAMESPACE = "default";
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
  return { namespace: NAMESPACE, name: claimNameOf({ containerID, interface: name }, hash), uid: "" };
}
