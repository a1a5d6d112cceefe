// SPDX-License-Identifier: Apache-2.0
// Pods whose interfaces have addresses of their own (ADR 0027), each made by containerd, a stand-in for Multus
// (test/control-plane/meta-plugin: Multus' module cannot be had) and a real main plugin: macvlan, bridge and ptp.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { partOf } from "../api/binaries.ts";
import { inheritedEnv, run } from "../support/process.ts";
import { configureNode, installBerth } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Lab, type Running } from "./lab.ts";
import type { Machine } from "./machine.ts";
import { POD_CABLE } from "./network.ts";
import { type Json, pod, pool, statefulSet } from "./objects.ts";
import { Sandboxes } from "./observer.ts";

const BUILD = fileURLToPath(new URL("../control-plane/build.sh", import.meta.url));
const CONFLIST = "/etc/cni/net.d/10-berth.conflist";
const FOLDER = "/etc/cni/attachments";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const ANNOTATIONS = { capabilities: { "io.kubernetes.cri.pod-annotations": true } };
const IPAM = { ...ANNOTATIONS, ipam: { type: "berth" } };

/** What NetworkAttachmentDefinitions would hold. */
const ATTACHMENTS: Readonly<Record<string, Json>> = {
  side: {
    ...{ name: "side", type: "macvlan", master: POD_CABLE, ipam: { type: "berth" } },
    capabilities: { ...ANNOTATIONS.capabilities, mac: true },
  },
  inner: { name: "inner", type: "bridge", bridge: "inner0", ...IPAM },
  line: { name: "line", type: "ptp", ...IPAM },
  // as whereabouts' documents have it
  ranged: {
    ...{ name: "ranged", type: "macvlan", master: POD_CABLE, ...ANNOTATIONS },
    ipam: { type: "whereabouts", range: "10.75.0.0/24", exclude: ["10.75.0.0/26"] },
  },
};

const POOLS = [
  poolOf("first", 71, { networks: ["pods"] }),
  poolOf("side", 72, { networks: ["side"] }),
  poolOf("inner", 73, { networks: ["inner"] }),
  poolOf("line", 74, { networks: ["line"] }),
  // 02:be:71:00:00:00 to 02:be:71:00:00:ff
  pool("macs", {
    ranges: [{ cidr: "fe80::/64", from: "fe80::be:71ff:fe00:0", to: "fe80::be:71ff:fe00:ff" }],
    reserved: ["fe80::be:71ff:fe00:0-fe80::be:71ff:fe00:ff"],
    cooldown: "1s",
  }),
];

function poolOf(name: string, n: number, more: Json): Json {
  const ranges = [
    { cidr: `10.${n}.0.0/24`, gateway: `10.${n}.0.254` },
    { cidr: `fd00:${n}::/64`, gateway: `fd00:${n}::fffe` },
  ];
  return pool(name, { ranges, cooldown: "1s", ...more });
}

let lab: Lab;
before(async () => {
  const built = await run("bash", [BUILD, "meta-plugin"], { env: inheritedEnv() });
  assert.equal(built.rc, 0, built.stderr);
  lab = await Lab.open("interfaces");
  for (const node of lab.cluster.nodes) await attach(node);
  await lab.apply(POOLS);
});
after(async () => {
  for (const node of lab?.cluster.nodes ?? []) await configureNode(node, "berth");
  await lab?.close();
  await lab?.must(["delete", "ippools", "first", "side", "inner", "line", "macs", "--timeout=60s"], {
    namespace: "default",
  });
});

/** The node's network stays what it is, behind the meta plugin. */
async function attach(node: Machine): Promise<void> {
  const { name, plugins } = JSON.parse(await node.must(["cat", CONFLIST])) as {
    name: string;
    plugins: Json[];
  };
  const meta = {
    type: "meta-plugin",
    delegate: plugins[0],
    folder: FOLDER,
    cacheDir: "/var/lib/cni/meta-plugin",
  };
  const list = { cniVersion: "1.0.0", name, plugins: [{ ...meta, ...ANNOTATIONS }] };
  await node.must(["mkdir", "-p", FOLDER]);
  await node.must(["cp", partOf("meta-plugin"), "/opt/cni/bin/meta-plugin"]);
  const write = async (path: string, what: Json) =>
    await node.must(["sh", "-c", `cat >${path}.new && mv ${path}.new ${path}`], JSON.stringify(what));
  for (const [network, conf] of Object.entries(ATTACHMENTS)) await write(`${FOLDER}/${network}.json`, conf);
  await write(CONFLIST, list);
}

/** `interface address/length`, of all its interfaces. */
async function interfacesOf(name: string): Promise<readonly string[]> {
  const text = await lab.must(["exec", name, "--", "ip", "-o", "addr", "show", "scope", "global"]);
  return [...text.matchAll(/^\d+: (\S+) +inet6? (\S+)/gm)]
    .map(([, link, cidr]) => `${link} ${cidr}`)
    .toSorted();
}

async function macOf(name: string, link: string): Promise<string> {
  return (await lab.must(["exec", name, "--", "cat", `/sys/class/net/${link}/address`])).trim();
}

/** IPv6 addresses can be used a moment after they are there. */
async function reaches(name: string, link: string, to: string): Promise<void> {
  const ping = ["exec", name, "--", "ping", "-q", "-c", "1", "-w", "5", "-I", link, to];
  await lab.until(`${name} reaches ${to} by ${link}`, async () => (await lab.kubectl(ping)).rc === 0, 60_000);
}

async function takenAddresses(): Promise<readonly string[]> {
  const text = await lab.must([
    "get",
    "ipreservations",
    "-o=jsonpath={range .items[*]}{.spec.address} {end}",
  ]);
  return text.split(" ").filter(Boolean);
}

const RELEASED = { "berth.dev/when-deleted": "Release" };

describe("pods with several interfaces", () => {
  it(
    "E0645 have pinned addresses of both families on three interfaces of three plugins, and answer on each",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0645");
      const three = (n: number, node: string, last: "inner" | "line") => {
        const third = last === "inner" ? 73 : 74;
        const ips = [
          `10.71.0.${n}/fd00:71::${n}`,
          `10.72.0.${n}/fd00:72::${n}@net1`,
          `10.${third}.0.${n}/fd00:${third}::${n}@${last}0`,
        ].join();
        const annotations = { [NETWORKS]: `side, ${last}@${last}0`, "berth.dev/ips": ips, ...RELEASED };
        return pod(`three-${n}`, { annotations, node, labels: { app: "three" } });
      };
      await lab.apply([
        three(11, "node-a", "inner"),
        three(12, "node-a", "inner"),
        three(13, "node-b", "line"),
      ]);
      await lab.runs("app=three", 3);
      times.step("running");
      for (const [n, link, third] of [
        [11, "inner0", 73],
        [12, "inner0", 73],
        [13, "line0", 74],
      ] as const)
        assert.deepEqual(
          await interfacesOf(`three-${n}`),
          [
            `eth0 10.71.0.${n}/24`,
            `eth0 fd00:71::${n}/64`,
            // ptp sets addresses alone, and a route to its gateway
            ...[`${link} 10.${third}.0.${n}/24`, `${link} fd00:${third}::${n}/64`],
            `net1 10.72.0.${n}/24`,
            `net1 fd00:72::${n}/64`,
          ].toSorted(),
        );
      for (const to of ["10.71.0.13", "fd00:71::13"]) await reaches("three-11", "eth0", to);
      for (const to of ["10.72.0.13", "fd00:72::13"]) await reaches("three-11", "net1", to);
      for (const to of ["10.73.0.12", "fd00:73::12"]) await reaches("three-11", "inner0", to);
      await reaches("three-13", "line0", "10.74.0.254");
      times.step("pinged");
      await lab.check();
      await lab.must(["delete", "pods", "-l", "app=three", "--wait=true", "--timeout=60s"]);
      await lab.until("no address is kept", async () =>
        (await takenAddresses()).every((one) => !/^10\.7[1-4]\./.test(one)),
      );
      times.end();
    },
  );

  it(
    "E0646 a StatefulSet keeps the addresses of two interfaces through an update, a drain and a forced deletion",
    caseOptions({ machines: true, slow: true }),
    async () => {
      const times = new Times("E0646");
      const ips = "10.71.0.31-10.71.0.33,10.72.0.31-10.72.0.33@net1";
      const macs = "02:be:71:00:00:31-02:be:71:00:00:33@net1";
      const annotations = { [NETWORKS]: "side", "berth.dev/ips": ips, "berth.dev/mac": macs, ...RELEASED };
      await lab.apply([statefulSet("pair", { replicas: 3, annotations })]);
      let were = await lab.runs("app=pair", 3);
      const stand = async () => {
        for (const [i, { name }] of were.entries()) {
          assert.deepEqual(await interfacesOf(name), [
            `eth0 10.71.0.3${i + 1}/24`,
            `net1 10.72.0.3${i + 1}/24`,
          ]);
          assert.equal(await macOf(name, "net1"), `02:be:71:00:00:3${i + 1}`);
          const other = ((i + 1) % 3) + 1;
          await reaches(name, "eth0", `10.71.0.3${other}`);
          await reaches(name, "net1", `10.72.0.3${other}`);
        }
        await lab.check();
      };
      const cameBack = async (gone: (pod: Running) => boolean) => {
        const old = new Set(were.filter(gone).map(({ uid }) => uid));
        were = await lab.runs("app=pair", 3, (pods) => pods.every(({ uid }) => !old.has(uid)));
        await stand();
      };
      await stand();
      times.step("made");
      await lab.must(["rollout", "restart", "statefulset/pair"]);
      await cameBack(() => true);
      times.step("updated");
      const node = were[0]?.node ?? "";
      await lab.must([
        "drain",
        node,
        "--pod-selector=app=pair",
        "--ignore-daemonsets",
        "--force",
        "--timeout=120s",
      ]);
      try {
        await cameBack((one) => one.node === node);
      } finally {
        await lab.must(["uncordon", node]);
      }
      times.step("drained");
      await lab.must(["delete", "pod", "pair-1", "--force", "--grace-period=0"]);
      await cameBack(({ name }) => name === "pair-1");
      times.step("forced");
      await lab.must(["delete", "statefulset", "pair", "--wait=true"]);
      await lab.until(
        "no pod is left",
        async () => (await lab.must(["get", "pods", "-l", "app=pair", "-o", "name"])) === "",
      );
      times.end();
    },
  );

  it(
    "E0647 are refused whole if one interface is, at admission and on the node",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0647");
      const asking = (name: string, ips: string, networks: string) =>
        pod(name, {
          annotations: { [NETWORKS]: networks, "berth.dev/ips": ips, ...RELEASED },
          node: "node-b",
        });
      await lab.apply([asking("holder", "10.71.0.51,10.72.0.51@net1", "side")]);
      await lab.runsAgain("holder");
      const { rc, stderr } = await lab.tryApply([asking("taken", "10.71.0.52,10.72.0.51@net1", "side")]);
      assert.notEqual(rc, 0);
      assert.match(stderr, /address 10\.72\.0\.51 in pool "side" is held by interfaces\/holder/);
      assert.ok(!(await takenAddresses()).includes("10.71.0.52"), "nothing is left of the other interface's");
      times.step("refused at admission");
      // the pool is for another network than the interface's
      await lab.apply([asking("misled", "10.71.0.53,10.73.0.53@net1", "side")]);
      await lab.until("the refusal is told", async () =>
        (await lab.events("misled")).some((one) => /pool "inner" is for networks inner, and side/.test(one)),
      );
      times.step("refused on the node");
      assert.equal(new Sandboxes(lab.cluster.nodes).of("10.73.0.53"), undefined);
      await lab.must(["delete", "pod", "misled", "holder", "--wait=true", "--timeout=60s"]);
      await lab.until("no address is kept", async () =>
        (await takenAddresses()).every((one) => !/^10\.7[1-3]\./.test(one)),
      );
      assert.equal(new Sandboxes(lab.cluster.nodes).of("10.71.0.53"), undefined, "nor its first interface");
      await lab.check();
      times.end();
    },
  );

  it(
    "E0649 a network of whereabouts is served by its plugin's name, once a pool has its range",
    caseOptions({ machines: true, slow: true }),
    async () => {
      const times = new Times("E0649");
      await installBerth(lab.cluster, ["--set", "cni.aliases={whereabouts}"]);
      for (const node of lab.cluster.nodes) {
        await attach(node);
        const named = ["berth", "whereabouts"].map((name) => `/opt/cni/bin/${name}`);
        const sums = (await node.must(["sha256sum", ...named])).match(/^[0-9a-f]{64}/gm) ?? [];
        assert.deepEqual([sums.length, new Set(sums).size], [2, 1]);
      }
      times.step("installed");
      await lab.apply([pod("ranged", { annotations: { [NETWORKS]: "ranged" }, node: "node-a" })]);
      await lab.until("the refusal is told", async () =>
        (await lab.events("ranged")).some((one) =>
          /no pool has what ipam\.range of type whereabouts means; make an IPPool with ranges: \[\{cidr: "10\.75\.0\.0\/24"/.test(
            one,
          ),
        ),
      );
      const ranges = [{ cidr: "10.75.0.0/24", exclude: ["10.75.0.0/25"] }];
      await lab.apply([
        pool("ranged", { ranges, networks: ["ranged"], blockSize: { ipv4: 32 }, cooldown: "1s" }),
      ]);
      await lab.runsAgain("ranged");
      const net1 = (await interfacesOf("ranged")).find((one) => one.startsWith("net1")) ?? "";
      assert.match(net1, /^net1 10\.75\.0\.(12[89]|1[3-9]\d|2\d\d)\/24$/);
      times.step("served");
      await lab.must(["delete", "pod", "ranged", "--wait=true", "--timeout=60s"]);
      await lab.must(["patch", "ippool", "ranged", "--type=merge", "-p", '{"spec":{"disabled":true}}']);
      await lab.until(
        "its block comes back",
        async () => (await lab.must(["get", "ipblocks", "-o", "name"])) === "",
      );
      await lab.must(["delete", "ippool", "ranged", "--wait=true", "--timeout=60s"]);
      await installBerth(lab.cluster);
      await lab.check();
      times.end();
    },
  );
});
