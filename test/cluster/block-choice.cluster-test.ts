// SPDX-License-Identifier: Apache-2.0
// Which pool serves a pod that asks for nothing: by zones of nodes, and by labels of namespaces.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, describe, it } from "node:test";
import { BlockLab, lasts, ROUTES, ZONE } from "./block-lab.ts";
import { caseOptions, Times } from "./cases.ts";
import type { Lab, Running } from "./lab.ts";
import { deployment, type Json, namespace, pod, pool, TEAM } from "./objects.ts";

const EXAMPLE = new URL("../../examples/cluster/blocks.yaml", import.meta.url);
const NETWORK = { cidr: "10.40.0.0/16", gateway: "10.40.0.1" };
const range = (from: string, to: string) => ({
  ranges: [{ ...NETWORK, from, to }],
  routes: ROUTES,
  cooldown: "1s",
});

let blocks: BlockLab;
let lab: Lab;
before(async () => {
  blocks = await BlockLab.open("block-choice");
  ({ lab } = blocks);
});
afterEach(async () => await blocks.clear());
after(async () => await blocks?.close());

function areIn(pods: readonly Running[], network: RegExp): void {
  for (const { addresses } of pods) assert.match(addresses[0] ?? "", network);
}

describe("blocks of several pools", () => {
  it(
    "E0574 a /19 of /27 serves the nodes of zone beijing, and /29 an internal and an external pool by the label of a namespace",
    caseOptions(),
    async () => {
      const times = new Times("E0574");
      await lab.must(["label", "node", "node-a", `${ZONE}=beijing`, "--overwrite"]);
      await lab.must(["label", "node", "node-b", `${ZONE}=shanghai`, "--overwrite"]);
      const reach = (name: string) => ({ namespaceSelector: { matchLabels: { reach: name } }, priority: 1 });
      await blocks.makePools(
        pool("beijing", {
          ...range("10.40.32.0", "10.40.63.255"),
          blockSize: { ipv4: 27 },
          nodeSelector: { matchLabels: { [ZONE]: "beijing" } },
          // else it would serve the other namespaces too, where their own pool has no address
          namespaceSelector: { matchLabels: TEAM },
        }),
        pool("internal", {
          ...range("10.40.4.0", "10.40.4.127"),
          blockSize: { ipv4: 29 },
          ...reach("internal"),
        }),
        pool("external", {
          ...range("10.40.4.128", "10.40.4.255"),
          blockSize: { ipv4: 29 },
          ...reach("external"),
        }),
      );
      await lab.apply(
        [namespace("inside", { reach: "internal" }), namespace("outside", { reach: "external" })],
        {
          namespace: "default",
        },
      );
      try {
        await lab.apply([deployment("zone", { replicas: 4, node: "node-a" })]);
        await lab.apply([deployment("in", { replicas: 4 })], { namespace: "inside" });
        await lab.apply([deployment("out", { replicas: 4 })], { namespace: "outside" });
        const zone = await lab.runs("app=zone", 4);
        for (const { addresses } of zone)
          assert.match(addresses[0] ?? "", /^10\.40\.(3[2-9]|4\d|5\d|6[0-3])\./);
        const ips = async (name: string) =>
          (
            await lab.must(["get", "pods", '-o=jsonpath={range .items[*]}{.status.podIP}{"\\n"}{end}'], {
              namespace: name,
            })
          )
            .split("\n")
            .filter((ip) => ip !== "");
        await lab.until(
          "all have addresses",
          async () => (await ips("inside")).length === 4 && (await ips("outside")).length === 4,
        );
        const third = (ip: string) => Number(ip.split(".")[3]);
        for (const ip of await ips("inside")) assert.ok(ip.startsWith("10.40.4.") && third(ip) < 128, ip);
        for (const ip of await ips("outside")) assert.ok(ip.startsWith("10.40.4.") && third(ip) >= 128, ip);
        await lab.pingAll(zone);
        times.step("pinged");
        await lab.check();
      } finally {
        await lab.must(["delete", "namespace", "inside", "outside", "--wait=true", "--timeout=120s"]);
      }
      times.end();
    },
  );

  it(
    "E0579 a fixed pod for a zone, by its node, its nodeSelector or its affinity, has an address of that zone's pool and runs there",
    caseOptions(),
    async () => {
      const times = new Times("E0579");
      await lab.must(["label", "node", "node-a", `${ZONE}=beijing`, "--overwrite"]);
      await lab.must(["label", "node", "node-b", `${ZONE}=shanghai`, "--overwrite"]);
      const inZone = (zone: string) => ({
        nodeSelector: { matchLabels: { [ZONE]: zone } },
        namespaceSelector: { matchLabels: TEAM },
        blockSize: {},
      });
      await blocks.makePools(
        pool("fixed-beijing", { ...range("10.40.64.1", "10.40.64.20"), ...inZone("beijing"), priority: 9 }),
        pool("fixed-shanghai", { ...range("10.40.65.1", "10.40.65.20"), ...inZone("shanghai"), priority: 8 }),
      );
      const terms = [{ matchExpressions: [{ key: ZONE, operator: "In", values: ["shanghai"] }] }];
      const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
      const places: Readonly<Record<string, Json>> = {
        anywhere: {},
        "by-name": { nodeName: "node-b" },
        "by-selector": { nodeSelector: { [ZONE]: "shanghai" } },
        "by-affinity": { affinity: { nodeAffinity: required } },
      };
      const annotations = { "berth.dev/sticky": "true", "berth.dev/when-deleted": "Release" };
      const made = Object.entries(places).map(([name, place]) => {
        const plain = pod(name, { annotations, labels: { app: "placed" } }) as { readonly spec: Json };
        return { ...plain, spec: { ...plain.spec, ...place } };
      });
      await lab.apply(made);
      const [anywhere, ...placed] = await lab.runs("app=placed", 4);
      assert.deepEqual([anywhere?.name, anywhere?.node], ["anywhere", "node-a"]);
      areIn(anywhere === undefined ? [] : [anywhere], /^10\.40\.64\./);
      areIn(placed, /^10\.40\.65\./);
      for (const { name, node } of placed) assert.equal(node, "node-b", name);
      times.step("running");
      await lab.pingAll(placed);
      await lab.check();
      await lab.must(["delete", "pods", "-l", "app=placed", "--wait=true", "--timeout=60s"]);
      await lab.until(
        "no address is kept",
        async () => (await lab.must(["get", "ipclaims", "-o", "name"])) === "",
      );
      times.end();
    },
  );

  it(
    "E0577 examples/cluster/blocks.yaml serves a zone's nodes, namespaces by a label, and all others",
    caseOptions(),
    async () => {
      const times = new Times("E0577");
      await lab.must(["apply", "-f", "-"], { stdin: await readFile(EXAMPLE, "utf8") });
      await blocks.adopt("shared", "beijing", "external");
      await lab.must(["label", "node", "node-a", `${ZONE}=beijing`, "--overwrite"]);
      await lab.apply([namespace("outside", { reach: "external" })], { namespace: "default" });
      try {
        await lab.apply([
          deployment("zone", { replicas: 3, node: "node-a" }),
          deployment("rest", { replicas: 3, node: "node-b" }),
        ]);
        await lab.apply([deployment("out", { replicas: 3 })], { namespace: "outside" });
        const zone = await lab.runs("app=zone", 3);
        const rest = await lab.runs("app=rest", 3);
        const out = await lab.runs("app=out", 3, undefined, { namespace: "outside" });
        times.step("running");
        areIn(zone, /^10\.64\.([12]?\d|3[01])\.\d+$/);
        areIn(rest, /^192\.168\.40\.(5\d|6\d|70)$/);
        areIn(out, /^203\.0\.113\./);
        assert.ok(
          lasts(out).every((last) => last > 15),
          "what is reserved is not given",
        );
        for (const pods of [zone, rest, out]) await lab.pingAll(pods);
        times.step("pinged");
        await lab.check();
      } finally {
        await lab.must(["delete", "namespace", "outside", "--wait=true", "--timeout=120s"]);
      }
      times.end();
    },
  );
});
