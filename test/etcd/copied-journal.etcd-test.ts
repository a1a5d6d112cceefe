// SPDX-License-Identifier: Apache-2.0
// A host's journal on another host, as from a cloned disk, and an older one of its own: what runs elsewhere keeps its address.
import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { listed } from "../../allocator/store/contract/subject.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, failureOf, type NetworkConfig } from "../support/runtime.ts";
import { openHandle } from "./handles.ts";
import { HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("a host's journal on another host", () => {
    let members: Members;
    const hosts: HostProcess[] = [];
    before(async () => {
      members = await startMembers({ count: 1 });
    });
    after(async () => {
      for (const host of hosts) await host.remove();
      await members?.close();
    });

    async function start(node: string): Promise<HostProcess> {
      const range = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.70" };
      const ipam = { type: "berth", etcdConfig: { etcdURL: members.urls[0] }, ...range };
      const network: NetworkConfig = { cniVersion: "1.0.0", name: "lan", type: "bridge", ipam };
      const host = await HostProcess.start({ node, urls: members.urls, network });
      hosts.push(host);
      return host;
    }

    /** Which addresses are taken, by etcd. */
    async function held(): Promise<readonly string[]> {
      const { store, close } = openHandle({ endpoints: members.urls });
      try {
        return (await listed(store, "reservation"))
          .filter(({ record }) => record.releasedAt === undefined)
          .map(({ key }) => `${key}/24`)
          .toSorted();
      } finally {
        await close();
      }
    }

    /** As a disk is cloned, or a folder copied: with what says which journal serves, or without. */
    function copyJournal(from: HostProcess, to: HostProcess): void {
      for (const name of ["berth.db", "berth.db-wal", "berth.db-shm", "agent.sock.journal"]) {
        const target = join(to.folder, "data", name);
        rmSync(target, { force: true });
        if (name !== "agent.sock.journal") cpSync(join(from.folder, "data", name), target);
      }
    }

    it("gives back nothing of what runs where it comes from, and gives no address of it", async () => {
      const [from, to] = [await start("host-a"), await start("host-b")];
      const box = from.container();
      const [address = ""] = addressesIn(await from.runtime.add(box));
      await from.kill9();
      await to.kill9();
      copyJournal(from, to);
      await from.up();
      await to.up();
      await to.runtime.detach({ ...to.container(), containerID: box.containerID });
      const [other = ""] = await eventually("the other host serves, or says why not", async () => {
        const answer = await to.runtime.add(to.container());
        return answer.kind === "succeeded" ? addressesIn(answer) : [failureOf(answer).msg];
      });
      assert.notEqual(other, address);
      assert.ok((await held()).includes(address), `${address} is held; the other host: ${other}`);
      assert.deepEqual(addressesIn(await from.runtime.add(box)), [address]);
      await from.runtime.detach(box);
      await eventually(
        "what ended where it ran is free",
        async () => !(await held()).includes(address) || undefined,
      );
    });
  });
}
