// SPDX-License-Identifier: Apache-2.0
// Two hosts that share a small range in etcd, through the same port to claims that an agent serves ADDs from.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addRequest, claimAddress } from "./containers.ts";
import { type Host, openHost } from "./host.ts";
import { callsOf, type Members, startMembers } from "./members.ts";
import { OneWayProxy } from "./one-way-proxy.ts";

const SIZE = 21;
/** .50 to .70 of a /24 */
const LAN = {
  name: "lan",
  spec: {
    ranges: [{ cidr: "10.10.20.0/24", from: "10.10.20.50", to: "10.10.20.70", gateway: "10.10.20.254" }],
    cooldown: "0s",
    limits: { perNamespace: SIZE }, // without Kubernetes there is one namespace
  },
};

/** A fault passes, as for a runtime that calls again. */
function addAgain(host: Host, name: string): Promise<string> {
  return eventually(`an answer for ${name}`, () =>
    claimAddress(host, addRequest(name)).catch((error: unknown) => {
      assert.ok(error instanceof BerthError, String(error));
      return undefined;
    }),
  );
}

/** A DEL, and what the host does afterwards until the address is free. */
async function remove({ claims, collector, context }: Host, name: string): Promise<void> {
  const { pod, attachment } = addRequest(name);
  const claim = `${pod.namespace}/${pod.name}`;
  const seen = await context.store.get("claim", claim);
  assert.ok(seen);
  await claims.detached({ claim, pod, attachment });
  await collector.judgeClaim(seen);
  await eventually(`the address of ${name} is free`, async () => {
    await collector.pass();
    const held = await Promise.all(
      seen.record.addresses.map((address) => context.store.get("reservation", address)),
    );
    return held.every((one) => one === undefined) || undefined;
  });
}

if (havePartsOrSkip(["etcd"])) {
  describe("two hosts that share 21 addresses in etcd", () => {
    let members: Members;
    let proxies: OneWayProxy[];
    let a: Host;
    let b: Host;
    before(async () => {
      members = await startMembers();
      proxies = await Promise.all(members.urls.map((url) => OneWayProxy.start(url)));
      a = await openHost("host-a", members.urls);
      b = await openHost(
        "host-b",
        proxies.map(({ url }) => url),
      );
      assert.equal((await a.context.store.create("pool", LAN)).kind, "created");
      for (const { context } of [a, b]) {
        await eventually("the pool is known", () => context.view.pool("lan") && true);
      }
    });
    after(async () => {
      await a?.close();
      await b?.close();
      for (const proxy of proxies ?? []) await proxy.close();
      await members?.close();
    });

    const names = Array.from({ length: SIZE }, (_, i) => `c-${i}`);
    const hostOf = (i: number) => (i % 2 === 0 ? a : b);
    const addresses = async () => (await listed(a.context.store, "reservation")).map(({ key }) => key);

    it("give each container one of its own while a member dies, and refuse the next one in words", async () => {
      const [member] = members.all;
      const adding = names.map((name, i) => addAgain(hostOf(i), name));
      await adding[0];
      await member?.daemon.stop("SIGKILL");
      const given = await Promise.all(adding);
      member?.daemon.start();
      assert.deepEqual(
        [...given].sort(),
        names.map((_, i) => `10.10.20.${50 + i}`),
      );
      assert.deepEqual((await addresses()).sort(), [...given].sort());
      for (const host of [a, b]) {
        const words = await addAgain(host, "c-22");
        assert.match(words, /^POOL_EXHAUSTED: .*"lan"/);
      }
      assert.equal((await addresses()).length, SIZE);
    });

    it("ask etcd once for the address of a new container", async () => {
      await remove(hostOf(0), names[0] ?? "");
      await remove(hostOf(2), names[2] ?? "");
      await eventually(
        "both have heard of it",
        () =>
          [a, b].every(({ context }) => [...context.view.reservations()].length === SIZE - 2) || undefined,
      );
      const before = await eventually("all members serve", () => callsOf(members).catch(() => undefined));
      for (const i of [0, 2])
        assert.match(await claimAddress(hostOf(i), addRequest(names[i] ?? "")), /^10\./);
      assert.equal((await callsOf(members)) - before, 2);
    });

    it("answer a repeated ADD with the same address, and leave the other's containers alone when they clean up", async () => {
      const before = await addresses();
      const again = await Promise.all(names.map((name, i) => addAgain(hostOf(i), name)));
      assert.deepEqual([...again].sort(), before.sort());
      for (const { collector } of [a, b]) {
        assert.deepEqual(await collector.pass(), { orphans: 0, cooled: 0, released: 0, retained: 0 });
      }
      assert.deepEqual((await addresses()).sort(), before.sort());
    });

    it("have an address that one gave back on the other", async () => {
      const [first = ""] = names;
      const freed = await addAgain(a, first);
      await remove(a, first);
      const next = await eventually("the address is free on the other host", async () => {
        const got = await claimAddress(b, addRequest("next"));
        return got.startsWith("POOL_EXHAUSTED") ? undefined : got;
      });
      assert.equal(next, freed);
      assert.match(await addAgain(a, first), /^POOL_EXHAUSTED/);
    });

    it("refuse what they cannot prove when they are cut off, and say why, and lose nothing", async () => {
      await remove(b, "next");
      const before = await addresses();
      for (const proxy of proxies) proxy.loses = "requests";
      await assert.rejects(claimAddress(b, addRequest("late")), (error: unknown) => {
        assert.ok(error instanceof BerthError);
        assert.match(error.code, /^(STORE_UNAVAILABLE|TIMED_OUT)$/);
        assert.match(error.message, /^etcd at http:.* (cannot be reached|did not answer in time)/);
        return true;
      });
      assert.match(await addAgain(a, "other"), /^10\.10\.20\./);
      for (const proxy of proxies) proxy.cut();
      assert.match(await addAgain(b, "late"), /^POOL_EXHAUSTED/);
      assert.equal((await addresses()).length, SIZE);
      assert.equal(before.length, SIZE - 1);
    });
  });
}
