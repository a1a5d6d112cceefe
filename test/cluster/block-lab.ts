// SPDX-License-Identifier: Apache-2.0
// A lab whose nodes serve pods that ask for nothing from pools, and from nothing else. Each case has pools of its own.
import { BERTH_NAMESPACE, configureNode, isOfRanges } from "./berth.ts";
import { Lab, type Running } from "./lab.ts";
import { type Json, pool } from "./objects.ts";

export const ZONE = "topology.kubernetes.io/zone";
export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
export const ROUTES = [{ dst: "0.0.0.0/0" }];
/** 21 addresses of one /24, for both nodes. */
export const SHARED = pool("shared", {
  ranges: [{ cidr: "192.168.40.0/24", from: "192.168.40.50", to: "192.168.40.70", gateway: "192.168.40.1" }],
  routes: ROUTES,
  cooldown: "1s",
  blockSize: { ipv4: 32 },
  default: true,
});
/** The last parts of all addresses of `SHARED`. */
export const ALL = Array.from({ length: 21 }, (_, n) => 50 + n);
/** Of the pools that go after each case. */
const OWN = "lab=blocks";

export class BlockLab {
  readonly lab: Lab;

  private constructor(lab: Lab) {
    this.lab = lab;
  }

  static async open(name: string): Promise<BlockLab> {
    const own = new BlockLab(await Lab.open(name));
    await own.#serveFrom("pools");
    return own;
  }

  async makePools(...pools: readonly Json[]): Promise<void> {
    await this.lab.apply(pools);
    for (const { metadata } of pools as readonly { readonly metadata: { readonly name: string } }[])
      await this.adopt(metadata.name);
  }

  /** The pools go after the case. */
  async adopt(...names: readonly string[]): Promise<void> {
    await this.lab.must(["label", "ippool", ...names, OWN]);
  }

  /** Whatever a case came to: all nodes are on and alike, no pod is left, and every block comes back by itself. */
  async clear(): Promise<void> {
    const { lab } = this;
    for (const { name, isOn } of lab.cluster.nodes) if (!isOn) await lab.cluster.powerOn(name);
    for (const { name } of lab.cluster.nodes) {
      await lab.cluster.startDaemons(name);
      await lab.kubectl(["taint", "node", name, `${OUT_OF_SERVICE}-`]);
      await lab.kubectl(["label", "node", name, `${ZONE}-`]);
      await lab.nodeReturns(name);
    }
    await lab.must(["delete", "deployments,pods", "--all", "--wait=true", "--timeout=120s"]);
    await lab.must(["delete", "pods", "-l", "k8s-app=kube-dns", "--wait=true"], { namespace: "kube-system" });
    await lab.check();
    await this.#moveBerthOut();
    const pools = (await lab.must(["get", "ippools", "-l", OWN, "-o", "name"])).split("\n").filter(Boolean);
    for (const one of pools)
      await lab.must(["patch", one, "--type=merge", "-p", '{"spec":{"disabled":true}}']);
    await lab.until(
      "the blocks of a pool that is disabled come back",
      async () => (await lab.must(["get", "ipblocks", "-o", "name"])) === "",
    );
    await lab.must(["delete", "ippools", "-l", OWN, "--wait=true", "--timeout=60s"]);
  }

  /**
   * Where a taint has sent one of Berth's own pods to the other node, it has an address of the case's pool, whose block
   * could not come back: such pods get others.
   */
  async #moveBerthOut(): Promise<void> {
    const within = { namespace: BERTH_NAMESPACE };
    const ips = await this.lab.must(["get", "pods", "-o=jsonpath={.items[*].status.podIP}"], within);
    if (ips.split(" ").every(isOfRanges)) return;
    await this.#serveFrom("ranges");
    for (const one of ["deployment/berth-webhook", "deployment/berth-issuer"]) {
      await this.lab.must(["rollout", "restart", one], within);
      await this.lab.must(["rollout", "status", one, "--timeout=120s"], within);
    }
    await this.#serveFrom("pools");
  }

  async close(): Promise<void> {
    await this.#serveFrom("ranges");
    await this.lab.close();
  }

  async #serveFrom(source: "ranges" | "pools"): Promise<void> {
    for (const node of this.lab.cluster.nodes) await configureNode(node, "berth", source);
  }
}

/** The last parts of the addresses. */
export function lasts(pods: readonly Running[]): readonly number[] {
  return pods.map(({ addresses: [one = ""] }) => Number(one.split(".")[3])).toSorted((a, b) => a - b);
}
