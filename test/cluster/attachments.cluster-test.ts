// SPDX-License-Identifier: Apache-2.0
// Pods with two networks and a pool for each, as underlay VLANs have: real macvlan plugins behind a stand-in for Multus.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { BlockLab, SHARED } from "./block-lab.ts";
import { caseOptions, Times } from "./cases.ts";
import type { Lab } from "./lab.ts";
import type { Machine } from "./machine.ts";
import { POD_CABLE } from "./network.ts";
import { type Json, pod, pool } from "./objects.ts";

const NAME = "attachments";
const PLUGIN = fileURLToPath(new URL("attachments-plugin.ts", import.meta.url));
const FOLDER = "/etc/cni/attachments";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const MACVLAN = { type: "macvlan", master: POD_CABLE };

/** What NetworkAttachmentDefinitions would hold. The last one names a pool that is not its own. */
const ATTACHMENTS: Readonly<Record<string, Json>> = {
  vlan10: { name: "bridge-10", ...MACVLAN, ipam: { type: "berth" } },
  vlan20: { name: "vlan20", ...MACVLAN, ipam: { type: "berth" } },
  strange: { name: "vlan30", ...MACVLAN, ipam: { type: "berth", pools: ["vlan20"] } },
};

const CLUSTER_NETWORK = {
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [
    {
      type: NAME,
      folder: FOLDER,
      delegate: { ...MACVLAN, ipam: { type: "berth" } },
      capabilities: { "io.kubernetes.cri.pod-annotations": true },
    },
  ],
};

let blocks: BlockLab;
let lab: Lab;
before(async () => {
  blocks = await BlockLab.open(NAME);
  ({ lab } = blocks);
  for (const node of lab.cluster.nodes) await attach(node);
});
afterEach(async () => await blocks.clear());
after(async () => await blocks?.close());

/** Gives the node's pods the networks that they ask for. */
async function attach(node: Machine): Promise<void> {
  const write = async (path: string, text: string) =>
    await node.must(
      ["sh", "-c", `cat >${path}.new && chmod 755 ${path}.new && mv ${path}.new ${path}`],
      text,
    );
  await node.must(["mkdir", "-p", FOLDER]);
  for (const [name, conf] of Object.entries(ATTACHMENTS))
    await write(`${FOLDER}/${name}.json`, JSON.stringify(conf));
  await write(`/opt/cni/bin/${NAME}`, `#!/bin/sh\nexec ${process.execPath} ${PLUGIN}\n`);
  await write("/etc/cni/net.d/10-berth.conflist", JSON.stringify(CLUSTER_NETWORK));
}

/** The IPv4 address of a pod's interface. */
async function addressAt(name: string, link: string): Promise<string> {
  const text = await lab.must(["exec", name, "--", "ip", "-4", "-o", "addr", "show", link]);
  return / inet ([\d.]+)\//.exec(text)?.[1] ?? "";
}

/** The pools go after the case. */
const RELEASED = { "berth.dev/when-deleted": "Release" };
const on = (networks: string, node: string, more: Readonly<Record<string, string>> = {}) => ({
  ...{ annotations: { [NETWORKS]: networks, ...more }, labels: { app: "attached" }, node },
});

describe("pods with networks beside the cluster's", () => {
  it(
    "E0578 have addresses of each network's own pool, and of no other's, whether they ask for one or not",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0578");
      const spec = { cooldown: "1s", priority: 9, blockSize: { ipv4: 32 } };
      await blocks.makePools(
        // made as the default and without a size: one address at a time
        pool("shared", { ...(SHARED["spec"] as Json), blockSize: undefined }),
        pool("vlan10", { ...spec, ranges: [{ cidr: "10.110.0.0/24" }], networks: [`${NAME}/vlan10`] }),
        pool("vlan20", { ...spec, ranges: [{ cidr: "10.120.0.0/24" }], networks: ["vlan20"] }),
      );
      await lab.apply([
        pod("ten-a", on("vlan10", "node-a")),
        pod("ten-b", on("vlan10", "node-b")),
        pod("twenty", on("vlan20", "node-a")),
        pod("both", on("vlan10,vlan20", "node-b")),
        pod("fixed", on("vlan10", "node-a", { "berth.dev/sticky": "true", ...RELEASED })),
      ]);
      const running = await lab.runs("app=attached", 5);
      assert.equal(
        await lab.must(["get", "ippool", "shared", "-o=jsonpath={.spec.blockSize}"]),
        '{"ipv4":32}',
      );
      times.step("running");
      for (const { name, addresses } of running) assert.match(addresses[0] ?? "", /^192\.168\.40\./, name);
      const tens = await Promise.all(
        ["ten-a", "ten-b", "both", "fixed"].map((name) => addressAt(name, "net1")),
      );
      const twenties = [await addressAt("twenty", "net1"), await addressAt("both", "net2")];
      for (const address of tens) assert.match(address, /^10\.110\.0\.\d+$/);
      for (const address of twenties) assert.match(address, /^10\.120\.0\.\d+$/);
      assert.equal(new Set([...tens, ...twenties]).size, 6);
      const chosen = "-o=jsonpath={.metadata.annotations.berth\\.dev/addresses}";
      assert.equal(
        await lab.must(["get", "pod", "fixed", chosen]),
        tens[3],
        "admission picked by its network",
      );
      for (const [name, link, to] of [
        ["ten-a", "net1", tens[1]],
        ["ten-b", "net1", tens[3]],
        ["both", "net2", twenties[0]],
      ] as const)
        await lab.must(["exec", name, "--", "ping", "-q", "-c", "1", "-w", "5", "-I", link, String(to)]);
      times.step("pinged");
      await lab.apply([
        pod("strayed", on("strange", "node-a")),
        pod("misled", on("vlan10", "node-b", { "berth.dev/ips": "10.120.0.200", ...RELEASED })),
      ]);
      for (const [name, network] of [
        ["strayed", "vlan30"],
        ["misled", "pods"],
      ] as const) {
        const words = new RegExp(`pool "vlan20" is for networks vlan20, and ${network}\\b.* none of them`);
        await lab.until(`${name} is refused in words`, async () =>
          (await lab.events(name)).some((event) => words.test(event)),
        );
      }
      times.step("refused");
      await lab.must(["delete", "pods", "strayed", "misled", "--wait=true", "--timeout=60s"]);
      await lab.check();
      await lab.must(["delete", "pod", "fixed", "--wait=true", "--timeout=60s"]);
      await lab.until(
        "no address is kept",
        async () => (await lab.must(["get", "ipclaims", "-o", "name"])) === "",
      );
      times.end();
    },
  );
});
