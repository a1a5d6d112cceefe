// SPDX-License-Identifier: Apache-2.0
// What a pod's annotations say of its networks: the "Kubernetes Network Custom Resource Definition De-facto Standard", as Multus reads it.

import type { Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { bad } from "./annotation-values.ts";
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

/** Far beyond what a pod can use: whatever is longer was written to cost time. An interface takes some 100 characters. */
const LONGEST_VALUE = 64 * 1024;
const MOST_NETWORKS = 64;

/** Why a pod's networks are not read. */
export function networksObjection(annotations: Labels): Refusal | undefined {
  for (const key of NETWORK_ANNOTATIONS) {
    const read = itemsIn(annotations[key]);
    if (read === "too long") return bad(key, `it is longer than ${LONGEST_VALUE} characters`);
    if (read === "too many") return bad(key, `it names more than ${MOST_NETWORKS} networks`);
  }
  return undefined;
}

/** Nothing that cannot be read is guessed: Multus refuses such a pod. Of what is too long, too, nothing is read. */
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
  const items = itemsIn(value);
  if (typeof items === "string") return [];
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

/** Its length is looked at before anything else is: an API server asks about objects of 3 MiB, whatever it takes afterwards. */
function itemsIn(value = ""): readonly Item[] | "too long" | "too many" {
  if (value.length > LONGEST_VALUE) return "too long";
  const text = value.trim();
  if (text === "") return [];
  const items = text.startsWith("[") ? jsonItems(text) : text.split(",", MOST_NETWORKS + 1).map(shortItem);
  return items.length > MOST_NETWORKS ? "too many" : items;
}

interface Item {
  readonly namespace: string;
  readonly name: string;
  readonly interface: string;
}

/** `[namespace/]name[@interface]` */
function shortItem(text: string): Item {
  const [network = "", interfaceName = ""] = text.trim().split("@", 2);
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
  return (Array.isArray(items) ? items.slice(0, MOST_NETWORKS + 1) : []).map((item) => {
    const fields = new Fields(item);
    return {
      namespace: fields.text("namespace"),
      name: fields.text("name"),
      interface: fields.text("interface"),
    };
  });
}
