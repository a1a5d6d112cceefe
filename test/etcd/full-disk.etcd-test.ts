// SPDX-License-Identifier: Apache-2.0
// Hosts give and take back addresses while a member of etcd has no room on its disk, and after it has some again.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, type NetworkConfig, type Sandbox } from "../support/runtime.ts";
import { taken } from "./handles.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

const isRoot = process.getuid?.() === 0;
const SKIP = isRoot ? false : "mounting a disk of its own needs root";

if (havePartsOrSkip(["etcd"])) {
  describe("a member of etcd whose disk is full", { skip: SKIP }, () => {
    let members: Members;
    let hosts: readonly HostProcess[];
    const live = new Map<Sandbox, { readonly host: HostProcess; readonly address: string }>();
    before(async () => {
      members = await startMembers({ smallDisk: true });
      const etcdConfig = { etcdURL: members.urls[0] };
      const ipam = { type: "berth", etcdConfig, subnet: "10.10.20.0/24" };
      const network: NetworkConfig = { cniVersion: "1.0.0", name: "lan", type: "bridge", ipam };
      hosts = await Promise.all(
        ["host-a", "host-b"].map((node) => HostProcess.start({ node, urls: members.urls, network })),
      );
    });
    after(async () => {
      for (const host of hosts ?? []) await host.remove();
      await members?.close();
    });

    async function add(host: HostProcess): Promise<void> {
      const sandbox = host.container();
      const address = await eventually(`an address on ${host.node}`, async () => {
        return addressesIn(await host.runtime.add(sandbox))[0];
      });
      assert.ok(![...live.values()].some((other) => other.address === address), `${address} is given twice`);
      live.set(sandbox, { host, address });
    }

    async function churn(): Promise<void> {
      await Promise.all([...hosts, ...hosts, ...hosts].map((host) => add(host)));
      for (const [sandbox, { host }] of [...live].slice(0, 3)) {
        live.delete(sandbox);
        await host.runtime.detach(sandbox);
      }
    }

    async function agree(): Promise<void> {
      const expected = [...live.values()].map(({ address }) => address.split("/")[0] ?? "").toSorted();
      await eventually("what is held is what containers have", async () => {
        const held = await taken({ endpoints: members.urls });
        return JSON.stringify(held) === JSON.stringify(expected) || undefined;
      });
      await eventually("records agree", async () => {
        const { rc, stdout } = await berthctl(members.urls, "check");
        return (rc === 0 && !stdout.includes("pending")) || undefined;
      });
    }

    it("is done without: no address is given twice and none is lost", async () => {
      await churn();
      members.fillDisk();
      const [first] = members.all;
      const value = Buffer.alloc(200_000, "x").toString("base64");
      for (let i = 0; first?.daemon.running === true; i++) {
        assert.ok(i < 200, "it does not mind its disk");
        await members.ask("kv/put", { key: Buffer.from(`/other/${i}`).toString("base64"), value });
        if (i % 5 === 0) await churn();
      }
      await churn();
      await agree();
    });

    it("comes back when there is room, and is as good as the others", async () => {
      const [first, second] = members.all;
      members.freeDisk();
      first?.daemon.start();
      await eventually("it serves", async () => {
        const answer = await fetch(`${first?.url}/health`).catch(() => undefined);
        return answer?.ok === true || undefined;
      });
      await second?.daemon.stop("SIGKILL");
      await churn();
      await agree();
    });
  });
}
