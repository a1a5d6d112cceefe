// SPDX-License-Identifier: Apache-2.0
import { FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";
import type { Host } from "../../ipam-plugin/agent/journal/host.ts";
import type { RuntimeRecord } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { netnsOf, type Sandbox } from "./cni-call.ts";
import type { Pod } from "./pod.ts";

const OWN_NETNS = "/proc/self/ns/net";
/** Sandboxes that runtimes remember after their end. */
const MOST_GONE = 6;

/** The sandboxes of a node and their network namespaces, and what its runtime and its kernel say of them. */
export class NodeSandboxes {
  readonly #node: string;
  readonly #netns = new Set<string>();
  #sandboxes: Sandbox[] = [];
  #made = 0;

  constructor(node: string) {
    this.#node = node;
  }

  get all(): readonly Sandbox[] {
    return this.#sandboxes;
  }

  currentOf(pod: Pod): Sandbox | undefined {
    const own = this.#sandboxes.filter((sandbox) => sandbox.pod === pod && sandbox.phase !== "down");
    return own.find((sandbox) => sandbox.interface === FIRST_INTERFACE) ?? own[0];
  }

  /** A new one, with its first interface. */
  make(pod: Pod): Sandbox {
    this.#made++;
    // What is long gone may still be spoken of, but not for ever.
    const gone = this.#sandboxes.filter(({ phase }) => phase === "down").slice(0, -MOST_GONE);
    this.#sandboxes = this.#sandboxes.filter((sandbox) => !gone.includes(sandbox));
    const id = `${this.#node}c${this.#made}`;
    const sandbox = this.#attach(pod, { id, containerID: id, interface: FIRST_INTERFACE });
    this.#netns.add(netnsOf(sandbox));
    return sandbox;
  }

  #attach(pod: Pod, where: Pick<Sandbox, "id" | "containerID" | "interface">): Sandbox {
    const sandbox: Sandbox = { ...where, pod, phase: "starting", fromBlock: false, addresses: [] };
    this.#sandboxes.push(sandbox);
    return sandbox;
  }

  /** The next interface that its pod is to have, if it has not all. */
  attachNext({ pod, containerID }: Sandbox): Sandbox | undefined {
    const has = this.#sandboxes.filter((one) => one.containerID === containerID).map((one) => one.interface);
    const next = pod.further.find((name) => !has.includes(name));
    if (next === undefined) return undefined;
    return this.#attach(pod, { id: `${containerID}/${next}`, containerID, interface: next });
  }

  /** Those of its container that are there. */
  interfacesOf({ containerID }: Sandbox): readonly Sandbox[] {
    return this.#sandboxes.filter((one) => one.containerID === containerID && one.phase !== "down");
  }

  loseNetns(sandbox: Sandbox): void {
    this.#netns.delete(netnsOf(sandbox));
  }

  /** It stays as long as an interface is in it. */
  endNetns(sandbox: Sandbox): void {
    if (this.#sandboxes.some((one) => one.containerID === sandbox.containerID && one.phase !== "down"))
      return;
    this.#netns.delete(netnsOf(sandbox));
  }

  powerOff(): void {
    for (const sandbox of this.#sandboxes) sandbox.phase = "down";
    this.#netns.clear();
  }

  /** What the runtime was answered and has not ended since, and whose namespace is there. */
  records(): readonly RuntimeRecord[] {
    const up = this.#sandboxes.filter(
      (sandbox) => sandbox.phase === "up" && this.#netns.has(netnsOf(sandbox)),
    );
    return up.map((sandbox) => ({
      ...{ path: `/var/lib/cni/results/net-${sandbox.containerID}-${sandbox.interface}`, network: "net" },
      ...{ containerID: sandbox.containerID, interface: sandbox.interface, netns: netnsOf(sandbox) },
      addresses: sandbox.addresses,
    }));
  }

  /** Who is left to himself sees no namespace more than he has seen: what is mounted elsewhere since does not come to his container. */
  host(isLeft: () => boolean): Host {
    const seen = new Set<string>();
    const look = (path: string) => {
      if (!this.#netns.has(path) || (isLeft() && !seen.has(path))) return "gone";
      seen.add(path);
      return "present";
    };
    return {
      look: async (path) => look(path),
      identity: async (path) => (path === OWN_NETNS || this.#netns.has(path) ? path : undefined),
      hasProcessEnded: () => false, // they have names of their own
      namespacesInUse: async () => undefined,
      read: async (path) => {
        throw new Error(`ENOENT: ${path}`);
      },
    };
  }
}
