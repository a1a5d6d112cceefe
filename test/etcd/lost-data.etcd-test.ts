// SPDX-License-Identifier: Apache-2.0
// An etcd that comes back without what hosts wrote, while their containers run.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { failureOf, type NetworkConfig, type Sandbox } from "../support/runtime.ts";
import { berthctl, HostProcess, listed } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

const RANGE = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.55" };
const FORGOTTEN = /^etcd does not have what containers of host (host-[ab]) have/;

if (havePartsOrSkip(["etcd"])) {
  describe("hosts whose etcd has lost its data", () => {
    let members: Members;
    let hosts: readonly HostProcess[] = [];
    before(async () => {
      members = await startMembers();
      const ipam = { type: "etcd", etcdConfig: { etcdURL: members.urls.join(",") }, ...RANGE };
      const network: NetworkConfig = { cniVersion: "1.0.0", name: "lan", type: "bridge", ipam };
      const of = { urls: members.urls, network };
      hosts = [
        await HostProcess.start({ ...of, node: "host-a" }),
        await HostProcess.start({ ...of, node: "host-b" }),
      ];
    });
    after(async () => {
      for (const host of hosts) await host.remove();
      await members?.close();
    });

    it("give nothing as long as containers run of which it knows nothing, and serve again by themselves", async () => {
      const [a, b] = hosts;
      if (a === undefined || b === undefined) return assert.fail();
      const boxes: (readonly [HostProcess, Sandbox])[] = [a, b, a, b].map((host) => [host, host.container()]);
      for (const [host, box] of boxes) assert.equal((await host.runtime.add(box)).kind, "succeeded");
      await members.loseAll();
      await b.kill9(); // one that has everything in memory, and one that knows its journal alone
      await b.up();
      for (const host of hosts) {
        const { msg } = await eventually("it has asked etcd", async () => {
          const failure = failureOf(await host.runtime.add(host.container()));
          return /can be proven free/.test(failure.msg) ? undefined : failure;
        });
        assert.equal(FORGOTTEN.exec(msg)?.[1], host.node, msg);
      }
      assert.deepEqual(await listed(members.urls, "reservations"), []);
      await eventually("both are seen to be alive, and to refuse", async () => {
        const { stdout } = await berthctl(members.urls, "get", "hosts");
        return [...stdout.matchAll(/^host-[ab] .* up, gives no address/gm)].length === 2 || undefined;
      });
      for (const [host, box] of boxes) await host.runtime.detach(box);
      const given = new Set<string>();
      for (const host of [a, b, a, b, a, b]) {
        await eventually("it serves again", async () => {
          return (await host.runtime.add(host.container())).kind === "succeeded" || undefined;
        });
        for (const address of await listed(members.urls, "reservations")) given.add(address);
      }
      assert.equal(given.size, 6);
    });
  });
}
