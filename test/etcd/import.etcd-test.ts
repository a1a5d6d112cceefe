// SPDX-License-Identifier: Apache-2.0
// From cni-ipam-etcd to Berth while containers run: no address is given twice, whichever host is switched when.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, failureOf } from "../support/runtime.ts";
import { type FormerPlugin, formerPlugin } from "./former-plugin.ts";
import { berthctl, HostProcess, listed } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

const SIZE = 12;
const FULL = Array.from({ length: SIZE }, (_, i) => `10.10.20.${50 + i}`);

if (havePartsOrSkip(["etcd"])) {
  describe("berthctl import", () => {
    let members: Members;
    let former: FormerPlugin;
    let hosts: readonly HostProcess[];
    const old = new Map<string, string>(); // container -> address that cni-ipam-etcd gave
    before(async () => {
      members = await startMembers({ count: 1 });
      former = await formerPlugin(members, "lan", SIZE);
      const ipam = {
        type: "etcd",
        etcdConfig: { etcdURL: members.urls[0] },
        subnet: "10.10.20.0/24",
        rangeStart: FULL[0],
        rangeEnd: FULL.at(-1),
        gateway: "10.10.20.254",
      };
      const network = { cniVersion: "0.4.0", name: "lan", type: "bridge", ipam };
      hosts = await Promise.all(
        ["host-a", "host-b"].map((node) => HostProcess.start({ node, urls: members.urls, network })),
      );
    });
    after(async () => {
      for (const host of hosts ?? []) await host.remove();
      await members?.close();
    });

    async function reported(code: number, ...args: readonly string[]): Promise<string> {
      const { rc, stdout, stderr } = await berthctl(members.urls, ...args);
      assert.equal(rc, code, stdout + stderr);
      return stdout + stderr;
    }

    async function addAsBefore(): Promise<void> {
      const id = randomBytes(32).toString("hex");
      old.set(id, (await former.add(id)) ?? assert.fail("full"));
    }

    const container = (i: number, containerID: string) => {
      const host = hosts[i] ?? assert.fail();
      return { host, sandbox: { ...host.container(), containerID } };
    };

    it("says what there is, and of a network that there is not", async () => {
      for (let i = 0; i < 4; i++) await addAsBefore();
      const dry = await reported(0, "import", "lan", "--dry-run");
      assert.match(dry, /^10\.10\.20\.50 +container [0-9a-f]{64}\n/);
      assert.match(dry, /network lan would be pool lan; 4 of 12 addresses are containers' \(dry run\)\n$/);
      assert.deepEqual(await listed(members.urls, "pools"), []);
      assert.match(
        await reported(1, "import", "yard"),
        /has kept nothing of a network called yard in this etcd/,
      );
    });

    it("keeps what containers have, also of an ADD that was under way, and cni-ipam-etcd gives nothing any more", async () => {
      const seen = (await former.look()) ?? assert.fail();
      const importing = reported(0, "import", "lan");
      await eventually("what was free is marked", async () =>
        (await former.look()) === undefined ? true : undefined,
      );
      await former.write(seen, "late".repeat(16)); // it had looked before
      old.set("late".repeat(16), seen);
      assert.match(await importing, /network lan is pool lan: 5 of 12 addresses are containers'/);
      assert.equal(await former.add("next"), undefined);
      assert.deepEqual((await listed(members.urls, "reservations")).toSorted(), [...old.values()].toSorted());
      assert.match(await reported(0, "import", "lan"), /is pool lan: 0 of 12/);
    });

    it("leaves the others to containers of Berth's, until all are given", async () => {
      const free = FULL.filter((address) => ![...old.values()].includes(address));
      const given = await Promise.all(
        free.map(async (_, i) => {
          const { host, sandbox } = container(i % 2, randomBytes(32).toString("hex"));
          return addressesIn(await host.runtime.add(sandbox))[0]?.split("/")[0] ?? assert.fail();
        }),
      );
      assert.deepEqual(given.toSorted(), free);
      const { host, sandbox } = container(0, "one-too-many");
      assert.equal(failureOf(await host.runtime.add(sandbox)).code, 107);
      assert.match(await reported(0, "check"), /^ok/);
    });

    it("a DEL of such a container gives its address back, on whichever host, also after an agent was away", async () => {
      const [[first, one], [second, two]] = [...old] as [[string, string], [string, string]];
      const near = container(0, first);
      await near.host.runtime.detach(near.sandbox);
      const far = container(1, second);
      await far.host.kill9();
      await far.host.runtime.detach(far.sandbox); // spooled
      await far.host.up();
      const next: string[] = [];
      for (const i of [0, 1]) {
        const { host, sandbox } = container(i, randomBytes(32).toString("hex"));
        next.push(
          await eventually("an address", async () => addressesIn(await host.runtime.add(sandbox))[0]),
        );
      }
      assert.deepEqual(next.toSorted(), [`${one}/24`, `${two}/24`].toSorted());
      assert.match(await reported(0, "import", "lan"), /is pool lan: 0 of 12/);
      assert.match(await reported(0, "check"), /^ok/);
    });

    it("refuses, naming both, what a container of each has", async () => {
      await former.write(FULL[11] ?? "", "twice");
      assert.match(
        await reported(1, "import", "lan"),
        /10\.10\.20\.61 has two holders: container twice by cni-ipam-etcd, and claim default\/c-/,
      );
    });
  });
}
