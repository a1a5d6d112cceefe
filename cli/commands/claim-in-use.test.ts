// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { type HostRecord, HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { EtcdLink } from "../../test/property/etcd-link.ts";
import { MemoryEtcd } from "../../test/property/memory-etcd.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { addrs, bindingTo, claimRecord, NOW, storedAs } from "../../test/support/fixtures.ts";
import { SeededRandom } from "../../test/support/random.ts";
import type { Backend } from "../backend/backend.ts";
import { Folder } from "../testing/folder.ts";
import { held } from "./claim-in-use.ts";

const RECORD: HostRecord = { journal: "j", process: "p", seen: NOW };
const FORCE = { force: true, evenIfAlive: false };
const binding = bindingTo("recorder", "host-c", { podUID: "" });
const named = { namespace: "default", name: "recorder" };
const identity = { apiVersion: "v1", kind: "Pod", name: "recorder" } as const;
const claim = storedAs("claim", claimRecord({ ...named, identity, addresses: addrs("10.20.0.70"), binding }));

function registryInMemory(): HostRegistry {
  const random = new SeededRandom(1);
  const link = new EtcdLink(new MemoryEtcd(), random);
  const deps = { clock: new ManualClock(), random, log: noopLogger, connect: () => link.connection() };
  return new HostRegistry(new EtcdClient({ endpoints: ["http://etcd:2379"] }, deps));
}

const NOT_ASKED =
  "host host-c was not asked whether the container of claim default/recorder has ended: while that runs, whoever is given 10.20.0.70 next has it, too; and from its agent's next start on this host gives no address until it knows of that end";

/** What was asked of the last one. */
let asked: string[] = [];

/** host-c shares an etcd, and is as `look` leaves it before each look. */
async function etcdWith(look: (registry: HostRegistry) => Promise<void>): Promise<Backend> {
  const registry = registryInMemory();
  await registry.put("host-c", RECORD, 0);
  asked = [];
  const fenced = async (name: string) => {
    asked.push(`fenced ${name}`);
    return (await registry.get(name))?.record.fenced !== undefined;
  };
  const uses = async () => {
    asked.push("uses");
    return [];
  };
  const hosts = async () => {
    await look(registry);
    return await registry.list();
  };
  return { place: "etcd", uses, world: { fenced }, hosts } as unknown as Backend;
}

async function beat(registry: HostRegistry): Promise<void> {
  const there = await registry.get("host-c");
  assert.notEqual(await registry.put("host-c", RECORD, there?.revision ?? 0), "changed");
}

describe("a claim that is released by force", () => {
  it("stays with a host that is alive, unless a person says that this is known", async (t) => {
    const out = { stdout: "", stderr: "" };
    const { io } = (await Folder.empty(t)).context(out);
    const refusal = await held(claim, await etcdWith(beat), FORCE, io);
    assert.ok(isRefusal(refusal));
    assert.equal(
      refusal.message,
      "claim default/recorder (10.20.0.70) is bound to container recorder on host host-c, which is alive: it has written to etcd while it was watched; stop the container first, or use --force --even-if-alive if you know that the container is gone",
    );
    assert.equal(out.stderr, "looking for 25 s whether host-c is alive\n");
    const known = { ...FORCE, evenIfAlive: true };
    const backend = await etcdWith(beat);
    assert.deepEqual(await held(claim, backend, known, io), { forced: NOT_ASKED });
    assert.deepEqual(asked, ["uses", "fenced host-c"], "once");
  });

  it("goes where its host is silent, or was fenced", async (t) => {
    const folder = await Folder.empty(t);
    const silent = await etcdWith(async () => {});
    assert.deepEqual(await held(claim, silent, FORCE, folder.context().io), { forced: NOT_ASKED });
    assert.deepEqual(asked, ["uses", "fenced host-c"], "once");
    assert.equal(folder.clock.now() >= NOW + 25_000, true, "for that it was watched");
    const fenced = await etcdWith(async (registry) => {
      const there = await registry.get("host-c");
      const record = { ...RECORD, fenced: { at: NOW, by: "a person" } };
      await registry.put("host-c", record, there?.revision ?? 0);
    });
    await fenced.hosts?.();
    const before = folder.clock.now();
    assert.deepEqual(await held(claim, fenced, FORCE, folder.context().io), { forced: undefined });
    assert.equal(folder.clock.now(), before, "it is not watched");
  });

  it("is no place for --even-if-alive without --force, or without hosts", async (t) => {
    const folder = await Folder.empty(t);
    for (const more of [[], ["--force"]]) {
      const { code, stderr } = await folder.call("release", "shop/recorder", "--even-if-alive", ...more);
      const [words] = stderr.split("\n");
      assert.deepEqual([code, words], [2, "Error: --even-if-alive is for --force where hosts share an etcd"]);
    }
  });
});
