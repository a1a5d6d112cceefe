// SPDX-License-Identifier: Apache-2.0
// What a pod's annotations say of its networks: the "Kubernetes Network Custom Resource Definition De-facto Standard", as Multus reads it.

import type { Labels } from "../base/ports.ts";
import { NETWORKS } from "./foreign-requests.ts";
import { Fields, isName } from "./kubernetes-object.ts";

/** Multus takes this one for a pod's first interface, in place of the cluster's. */
export const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";
export const NETWORK_ANNOTATIONS: readonly string[] = [NETWORKS, DEFAULT_NETWORK];

/** An interface of a pod, and the NetworkAttachmentDefinition that makes it. */
export interface NetworkAttachment {
  /** namespace/name */
  readonly network: string;
  readonly interface: string;
}

/** Nothing that cannot be read is guessed: Multus refuses such a pod. */
export function networkAttachments(annotations: Labels, namespace: string): readonly NetworkAttachment[] {
  const [first] = attachmentsIn(annotations[DEFAULT_NETWORK], namespace, () => "eth0");
  const more = attachmentsIn(annotations[NETWORKS], namespace, (i) => `net${i + 1}`);
  return [...(first === undefined ? [] : [first]), ...more];
}

function attachmentsIn(
  value: string | undefined,
  namespace: string,
  interfaceAt: (index: number) => string,
): readonly NetworkAttachment[] {
  const text = value?.trim() ?? "";
  if (text === "") return [];
  const items = text.startsWith("[") ? jsonItems(text) : text.split(",").map(shortItem);
  return items.flatMap(({ name, ...item }, i) =>
    !isName(name)
      ? []
      : [
          {
            network: `${item.namespace === "" ? namespace : item.namespace}/${name}`,
            interface: item.interface === "" ? interfaceAt(i) : item.interface,
          },
        ],
  );
}

interface Item {
  readonly namespace: string;
  readonly name: string;
  readonly interface: string;
}

/** `[namespace/]name[@interface]` */
function shortItem(text: string): Item {
  const [network = "", interfaceName = ""] = text.trim().split("@");
  const [name = "", namespace = ""] = network.split("/").reverse();
  return { namespace, name, interface: interfaceName };
}

function jsonItems(text: string): readonly Item[] {
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    return [];
  }
  return (Array.isArray(items) ? items : []).map((item) => {
    const fields = new Fields(item);
    return {
      namespace: fields.text("namespace"),
      name: fields.text("name"),
      interface: fields.text("interface"),
    };
  });
}
