// SPDX-License-Identifier: Apache-2.0
// Two hosts without Kubernetes, `berthctl up --etcd` as processes, that share 21 addresses in an etcd of three members, and what
// a runtime does there. What goes wrong is the tests'.
import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { addressesIn, type NetworkConfig, type Sandbox } from "../support/runtime.ts";
import { taken } from "./handles.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";
import { OneWayProxy } from "./one-way-proxy.ts";

/** How many addresses the network has. */
export const SIZE = 21;

/** A network of cni-ipam-etcd: unchanged but for paths, which nothing reads, and the interface of macvlan. */
export function network(
  url: string,
  main: { readonly type: string } & Record<string, unknown>,
  plugin = "etcd",
): NetworkConfig {
  return {
    cniVersion: "0.4.0",
    name: "lan",
    ...main,
    ipam: {
      name: "myetcd-ipam",
      type: plugin,
      etcdConfig: {
        etcdURL: url,
        etcdCertFile: "/etc/cni/net.d/etcd.pem",
        etcdKeyFile: "/etc/cni/net.d/etcd-key.pem",
        etcdTrustedCAFileFile: "/etc/cni/net.d/etcd-ca.pem",
      },
      subnet: "10.10.20.0/24",
      rangeStart: "10.10.20.50",
      rangeEnd: "10.10.20.70",
      gateway: "10.10.20.254",
      routes: [{ dst: "0.0.0.0/0" }],
    },
  };
}

/** Without the length of the prefix. */
export const bare = (cidrs: readonly string[]) => cidrs.map((cidr) => cidr.split("/")[0] ?? "");

/** An ADD until it has an address, as a runtime that calls again. */
export function attached(host: HostProcess, sandbox: Sandbox): Promise<string> {
  return eventually(`an address on ${host.node}`, async () => {
    return bare(addressesIn(await host.runtime.add(sandbox)))[0];
  });
}

export async function nothingWrong(urls: readonly string[]): Promise<void> {
  await eventually("records agree", async () => {
    const { rc, stdout } = await berthctl(urls, "check");
    return (rc === 0 && !stdout.includes("pending")) || undefined;
  });
}

export class SharingHosts {
  readonly members: Members;
  /** Between etcd and `b`. */
  readonly proxies: readonly OneWayProxy[];
  readonly a: HostProcess;
  readonly b: HostProcess;
  /** What runs. */
  readonly live = new Map<Sandbox, { readonly host: HostProcess; readonly address: string }>();

  private constructor(parts: Pick<SharingHosts, "members" | "proxies" | "a" | "b">) {
    ({ members: this.members, proxies: this.proxies, a: this.a, b: this.b } = parts);
  }

  static async start(): Promise<SharingHosts> {
    const members = await startMembers();
    const proxies = await Promise.all(members.urls.map((url) => OneWayProxy.start(url)));
    const lan = (urls: readonly string[]) => network(urls[0] ?? "", { type: "bridge" });
    const a = await HostProcess.start({ node: "host-a", urls: members.urls, network: lan(members.urls) });
    const cut = proxies.map(({ url }) => url);
    const b = await HostProcess.start({ node: "host-b", urls: cut, network: lan(cut) });
    return new SharingHosts({ members, proxies, a, b });
  }

  async close(): Promise<void> {
    for (const host of [this.a, this.b]) await host.remove();
    for (const proxy of this.proxies) await proxy.close();
    await this.members.close();
  }

  async add(host: HostProcess): Promise<void> {
    const sandbox = host.container();
    const address = await attached(host, sandbox);
    const other = [...this.live.values()].find((each) => each.address === address);
    assert.equal(other, undefined, `${address} is given twice`);
    this.live.set(sandbox, { host, address });
  }

  async remove(sandbox: Sandbox): Promise<void> {
    const { host } = this.live.get(sandbox) ?? assert.fail();
    this.live.delete(sandbox); // whoever gets it from here on gets it rightly
    await host.runtime.detach(sandbox);
  }

  async onlyLiveOnesAreHeld(): Promise<void> {
    const expected = [...this.live.values()].map(({ address }) => address).toSorted();
    await eventually("what is held is what containers have", async () => {
      const held = await taken({ endpoints: this.members.urls });
      return JSON.stringify(held) === JSON.stringify(expected) || undefined;
    });
    await nothingWrong(this.members.urls);
  }
}
