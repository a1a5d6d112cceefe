// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { ApiServer, type Kept } from "./api-server.ts";
import { eventually } from "./eventually.ts";
import { pod } from "./manifests.ts";
import { NetworkHost } from "./netns.ts";
import { detachAll, type NetworkConfig, networkOf, Runtime, type Sandbox, sandboxOf } from "./runtime.ts";
import { ChildStack } from "./stack.ts";
import type { TestStackOptions } from "./stack-folder.ts";

/** A pod with pinned addresses and a sandbox of its own that nothing is attached to yet. */
export interface Pinned {
  readonly kept: Kept;
  readonly sandbox: Sandbox;
  /** Name of the sandbox's namespace. */
  readonly netns: string;
}

/** A stack for a whole suite, whose tests leave nothing attached. */
export function networkedSuite(
  manifests: TestStackOptions["manifests"],
  begin: (site: NetworkedStack) => void,
): void {
  let site: NetworkedStack | undefined;
  before(async () => {
    site = await NetworkedStack.start({ ...(manifests && { manifests }) });
    begin(site);
  });
  after(() => site?.remove());
  afterEach(async () => {
    assert.deepEqual(await site?.leftovers(), { attached: [], findings: "" });
  });
}

/** A stack as a process, and a host with network namespaces that its pods are attached in. */
export class NetworkedStack {
  readonly stack: ChildStack;
  readonly host: NetworkHost;
  /** The interface that macvlan stands on. */
  readonly uplink: string;
  #api: ApiServer;
  #pods = 0;

  private constructor(stack: ChildStack, host: NetworkHost, uplink: string) {
    this.stack = stack;
    this.host = host;
    this.uplink = uplink;
    this.#api = new ApiServer(stack.endpoint);
  }

  static async start(options: TestStackOptions): Promise<NetworkedStack> {
    const host = await NetworkHost.make();
    try {
      const uplink = await host.uplink();
      return new NetworkedStack(await ChildStack.start(options), host, uplink);
    } catch (error) {
      await host.remove();
      throw error;
    }
  }

  get api(): ApiServer {
    return this.#api;
  }

  /** After the stack was started again, at another port. */
  reconnect(): void {
    this.#api.close();
    this.#api = new ApiServer(this.stack.endpoint);
  }

  private settings() {
    return {
      bridge: { bridge: "berth0" },
      macvlan: { master: this.uplink, mode: "bridge" },
      ipvlan: { master: this.uplink, mode: "l2" },
      vlan: { master: this.uplink, vlanId: 20 },
      "host-device": {},
      ptp: {},
    } as const;
  }

  /** A network of that main plugin. */
  runtime(type: keyof ReturnType<NetworkedStack["settings"]>, more: Partial<NetworkConfig> = {}): Runtime {
    const own = this.settings()[type];
    const network = { ...networkOf({}, { name: `net-${type}`, type, ...own }), ...more };
    return new Runtime({ socket: this.stack.socket, host: this.host, network });
  }

  /** `addresses` are written with their prefix lengths, as they will be shown. */
  async pinned(addresses: readonly string[], how: "patient" | "hasty" = "hasty"): Promise<Pinned> {
    const bare = addresses.map((cidr) => cidr.split("/")[0]).join(",");
    const kept = await this.#api.create(pod("shop", `pinned-${this.#pods++}`, { "berth.dev/ips": bare }));
    return { kept, ...(await this.sandboxFor(kept, how)) };
  }

  /** A new sandbox of the pod, in a namespace of its own. */
  async sandboxFor(kept: Kept, how: "patient" | "hasty" = "hasty"): Promise<Omit<Pinned, "kept">> {
    const netns = await this.host.sandbox(how);
    return { sandbox: sandboxOf(kept, { netns: `/run/netns/${netns}` }), netns };
  }

  /** Interfaces and global addresses of a sandbox, once the kernel lets all of them be used. */
  async shown(netns: string): Promise<readonly string[]> {
    const found = await eventually("the addresses can be used", async () => {
      const addresses = await this.host.addressesOf(netns);
      return addresses.every(({ usable }) => usable) ? addresses : undefined;
    });
    return found.map(({ interface: name, cidr }) => `${name} ${cidr}`);
  }

  /** Ends what a test left attached and says what that was, then what `berthctl check` finds. */
  async leftovers(): Promise<{ readonly attached: readonly string[]; readonly findings: string }> {
    const attached = await detachAll(this.stack);
    return { attached, findings: await this.stack.findings() };
  }

  async remove(): Promise<void> {
    this.#api.close();
    await this.stack.remove();
    await this.host.remove();
  }
}
