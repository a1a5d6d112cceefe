// SPDX-License-Identifier: Apache-2.0
// Networks with etcdConfig beside the cluster's own pools: real agents, a real API server, and an etcd that asks for the certificates
// of a folder which is mounted as the kubelet mounts a Secret.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Said } from "../cni/caller.ts";
import { taken } from "../etcd/handles.ts";
import { berthctl } from "../etcd/host-process.ts";
import { TlsEtcd } from "../etcd/tls-etcd.ts";
import { eventually } from "../support/eventually.ts";
import { sandbox, type TestPod } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane } from "./shared-plane.ts";

const RANGE = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.52" };
const FILES = ["etcd.pem", "etcd-key.pem", "etcd-ca.pem"];

/** A Secret as the kubelet mounts it: names that are links into a folder which is changed by a rename. */
class MountedSecret {
  readonly folder = mkdtempSync(join(tmpdir(), "secret-"));
  #version = 0;

  write(from: string): void {
    const version = `..${++this.#version}`;
    mkdirSync(join(this.folder, version));
    for (const name of FILES) cpSync(join(from, name), join(this.folder, version, name));
    symlinkSync(version, join(this.folder, "..next"));
    renameSync(join(this.folder, "..next"), join(this.folder, "..data"));
    if (this.#version > 1) rmSync(join(this.folder, `..${this.#version - 1}`), { recursive: true });
    else for (const name of FILES) symlinkSync(`..data/${name}`, join(this.folder, name));
  }
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  describe("networks in etcd, in a cluster", () => {
    const secret = new MountedSecret();
    let etcd: TlsEtcd;
    before(async () => {
      etcd = await TlsEtcd.start();
    });
    after(async () => {
      await etcd?.close();
      rmSync(secret.folder, { recursive: true, force: true });
    });

    const more = { BERTH_ETCD_CERTIFICATES: secret.folder };

    async function nodeWith(name: string): Promise<AgentNode> {
      const node = await suite.makeNode(name);
      node.more = more;
      await node.start();
      return node;
    }

    const kept = async () => await suite.keptNode("node-e", more);

    const ipam = (other: object = {}) => ({
      etcdConfig: { ...etcd.config(secret.folder), ...other },
      ...RANGE,
    });
    const onLan = (pod: TestPod, cid: string, said: Said = {}): Said =>
      sandbox(pod, cid, { ipam: ipam(), conf: { name: "lan" }, ...said });
    const held = () => taken(etcd.access);

    it("are refused in words where the chart names no Secret, and where it is not there yet", async () => {
      const bare = await suite.startNode("node-a");
      const pod = await suite.cluster.pod("early-0", "node-a");
      assert.equal(
        await bare.runtime.refused("ADD", onLan(pod, "c1")),
        "7 ipam.etcdConfig: the agent of this host serves no networks in etcd; start it with: berthctl up --etcd URL (in a cluster set agent.etcdSecret of the chart), or take etcdConfig out",
      );
      const node = await nodeWith("node-b");
      const other = await suite.cluster.pod("early-1", "node-b");
      const words = await node.runtime.refused("ADD", onLan(other, "c1"));
      assert.match(words, /the certificates for etcd cannot be used: ENOENT.*etcd-ca\.pem/);
      secret.write(etcd.folder);
      assert.equal((await node.runtime.add(onLan(other, "c1"))).length, 1, "and then they are read");
      await node.runtime.del(onLan(other, "c1"));
      await eventually("it is given back", async () => ((await held()).length === 0 ? true : undefined));
    });

    it("give addresses to pods of all nodes, each once, beside the pools of the cluster", async () => {
      const nodes = [await nodeWith("node-c"), await nodeWith("node-d")];
      const given: string[] = [];
      for (const [i, node] of [...nodes, ...nodes].entries()) {
        const pod = await suite.cluster.pod(`lan-${i}`, node.name);
        const said = onLan(pod, `lan-${i}`);
        if (i < 3) given.push(...(await node.runtime.add(said)));
        else assert.match(await node.runtime.refused("ADD", said), /^107 .*"lan"/);
      }
      assert.deepEqual(given.toSorted(), ["10.10.20.50/24", "10.10.20.51/24", "10.10.20.52/24"]);
      const [node] = nodes;
      if (node === undefined) return assert.fail();
      const bound = await suite.cluster.boundPod("fixed-0", node.name);
      assert.deepEqual(await node.runtime.add(sandbox(bound, "fixed-0")), [bound.cidr]);
      await node.stop("SIGKILL");
      await node.start();
      await node.runtime.del(onLan({ name: "lan-0", uid: "" }, "lan-0", { ipam: { type: "berth" } }));
      await eventually("it is given back", async () => ((await held()).length === 2 ? true : undefined));
      for (const [one, cid] of [
        [1, "lan-1"],
        [0, "lan-2"],
      ] as const)
        await nodes[one]?.runtime.del(onLan({ name: cid, uid: "" }, cid));
      await eventually("all are given back", async () => ((await held()).length === 0 ? true : undefined));
      const { rc, stdout } = await berthctl(etcd.urls, ...etcd.flags, "check");
      assert.equal(rc, 0, stdout);
    });

    it("serve the second interface of a pod that has a claim for its first, and never the first", async () => {
      const node = await kept();
      const pod = await suite.cluster.boundPod("both-0", "node-e");
      assert.match(
        await node.runtime.refused("ADD", onLan(pod, "both-0")),
        /^7 claim shop\/both-0 has an address for this pod, and network lan takes its addresses from etcd;/,
      );
      assert.deepEqual(await node.runtime.add(sandbox(pod, "both-0")), [pod.cidr]);
      const second = await node.runtime.add(onLan(pod, "both-0", { ifname: "net1" }));
      assert.match(second.join(), /^10\.10\.20\.5\d\/24$/);
    });

    it("name no etcd that does not prove itself, and no file but those of the Secret", async () => {
      const node = await kept();
      const pod = await suite.cluster.pod("sly-0", "node-e");
      const refused = (other: object) =>
        node.runtime.refused("ADD", onLan(pod, "sly", { ipam: ipam(other) }));
      assert.match(
        await refused({ etcdURL: "http://10.0.0.1:2379" }),
        /^100 ipam\.etcdConfig\.etcdURL: http:\/\/10\.0\.0\.1:2379 is not https/,
      );
      assert.match(
        await refused({ etcdTrustedCAFileFile: "" }),
        /^100 ipam\.etcdConfig\.etcdTrustedCAFileFile: is missing/,
      );
      for (const path of ["/var/lib/kubelet/pki/kubelet.pem", `${secret.folder}/../../etc/passwd`])
        assert.match(
          await refused({ etcdKeyFile: path }),
          /^100 ipam\.etcdConfig\.etcdKeyFile: .* is not in /,
        );
    });

    it("go on with the certificates that the Secret is changed to", async () => {
      const node = await kept();
      const pod = await suite.cluster.pod("late-0", "node-e");
      await node.runtime.add(onLan(pod, "late-0"));
      await etcd.issue("etcd.pem", "etcd-key.pem");
      secret.write(etcd.folder);
      await eventually(
        "it has connected anew",
        () => node.log.includes("certificates for etcd have changed") || undefined,
      );
      await node.runtime.del(onLan(pod, "late-0"));
      const next = await suite.cluster.pod("later-0", "node-e");
      assert.equal((await node.runtime.add(onLan(next, "later-0"))).length, 1);
    });
  });
}
