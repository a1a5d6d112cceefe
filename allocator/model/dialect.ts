// SPDX-License-Identifier: Apache-2.0
// Other systems that pods ask for addresses, and how far Berth answers in their stead (ADR 0024).

/** As the chart's values have it -> as people call it. */
export const SYSTEMS = {
  calico: "Calico",
  kubeOvn: "kube-ovn",
  antrea: "Antrea",
  spiderpool: "Spiderpool",
  hybridnet: "HybridNet",
  cilium: "Cilium",
  multus: "Multus",
  staticIpam: "static-ipam",
  kubeIpam: "kube-ipam",
} as const;
export type System = keyof typeof SYSTEMS;

/**
 * Which requests in a system's words are for Berth: those for its pools, and others are that system's matter; every one, as if it
 * was written in Berth's; or none, they are not read.
 */
const DIALECT_CHOICES = ["own", "all", "none"] as const;
export type DialectChoice = (typeof DIALECT_CHOICES)[number];

/** A system that is not named is answered whatever it asks for, as on one host, where there is no other system. */
export type Dialects = Readonly<Partial<Record<System, DialectChoice>>>;

export const SYSTEM_NAMES: readonly System[] = Object.keys(SYSTEMS).filter(isSystem);

/** What the chart chooses if nobody does. */
export const OWN_OF_EACH: Dialects = Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "own"]));

/** `calico=own,kubeOvn=none`; a system that is not named is `own`. Undefined: it is not written so. */
export function parseDialects(text: string): Dialects | undefined {
  const read: Partial<Record<System, DialectChoice>> = { ...OWN_OF_EACH };
  for (const item of text.split(",").filter((part) => part.trim() !== "")) {
    const [system = "", chosen = "", ...more] = item.trim().split("=");
    const choice = DIALECT_CHOICES.find((one) => one === chosen);
    if (!isSystem(system) || choice === undefined || more.length > 0) return undefined;
    read[system] = choice;
  }
  return read;
}

function isSystem(name: string): name is System {
  return Object.hasOwn(SYSTEMS, name);
}
