// SPDX-License-Identifier: Apache-2.0
// Members of etcd that die under hosts without Kubernetes, as their users have them. What is not etcd's fault is in
// agents.etcd-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { compact } from "./members.ts";
import { attached, SharingHosts } from "./sharing-hosts.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("hosts that share 21 addresses", () => {
    let hosts: SharingHosts;
    before(async () => {
      hosts = await SharingHosts.start();
    });
    after(() => hosts?.close());

    async function killInTheMiddle(adding: Promise<unknown>): Promise<void> {
      await adding;
      await hosts.a.kill9();
      const own = [...hosts.live].filter(([, { host }]) => host === hosts.a).map(([sandbox]) => sandbox);
      for (const sandbox of own.slice(0, 2)) await hosts.remove(sandbox); // spooled
      await hosts.a.up();
    }

    async function churn(): Promise<void> {
      const [gone, kept] = [[...hosts.live.keys()].slice(0, 4), [...hosts.live].slice(4)];
      await Promise.all(gone.map((sandbox) => hosts.remove(sandbox)));
      for (const [sandbox, { host, address }] of kept) {
        assert.equal(await attached(host, sandbox), address, "an ADD that is repeated");
      }
    }

    it("give no address twice and lose none while members die one after another, a host is killed, and etcd is compacted", async () => {
      const { members, a, b } = hosts;
      for (const [round, member] of [...members.all, ...members.all].entries()) {
        const adding = Promise.all([a, b, a, b, a, b].map((host) => hosts.add(host)));
        await member.daemon.stop("SIGKILL");
        if (round === 2) await killInTheMiddle(adding);
        await adding;
        member.daemon.start();
        await members.ready();
        if (round === 4) await compact(members);
        await churn();
      }
      await hosts.onlyLiveOnesAreHeld();
    });
  });
}
