// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { type HostRecord, HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import { EtcdLink } from "../../test/property/etcd-link.ts";
import { MemoryEtcd } from "../../test/property/memory-etcd.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { addrs, bindingTo, claimRecord, DB_POOL, NOW, reservationsOf } from "../../test/support/fixtures.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { allOf } from "../backend/embedded-backend.ts";
import { Folder } from "../testing/folder.ts";
import { fenceHost } from "./fence.ts";

const OLD: HostRecord = { journal: "of the old host", process: "p", seen: NOW };
const NEW: HostRecord = { journal: "of the new host", process: "q", seen: NOW };
const FENCED = { ...OLD, fenced: { at: NOW, by: "another" } };

function claimOf(address: string, container: string, node = "host-c") {
  const binding = bindingTo(container, node, { podUID: "" });
  return claimRecord({ name: container, nonce: container, addresses: addrs(address), binding });
}

/** An etcd in memory with the record of host-c and a claim of its own. */
class Scene {
  readonly out = { stdout: "", stderr: "" };
  /** Called before etcd is asked for all claims. */
  beforeList: (time: number) => Promise<void> = async () => {};
  /** Called before and after the fence writes the host's record. */
  beforeMark: () => Promise<void> = async () => {};
  afterMark: () => Promise<void> = async () => {};
  readonly #test: TestContext;
  readonly #deps = { clock: new ManualClock(), random: new SeededRandom(1), log: noopLogger };
  readonly #client = new EtcdClient(
    { endpoints: ["http://etcd:2379"] },
    { ...this.#deps, connect: () => new EtcdLink(new MemoryEtcd(), this.#deps.random).connection() },
  );
  readonly store = openEtcdStore({ ...this.#deps, client: this.#client });
  readonly registry = new HostRegistry(this.#client);

  private constructor(test: TestContext) {
    this.#test = test;
  }

  static async of(test: TestContext, record: HostRecord): Promise<Scene> {
    const scene = new Scene(test);
    await scene.store.create("pool", DB_POOL);
    await scene.registry.put("host-c", record, 0);
    await scene.give("10.20.0.70", "old");
    return scene;
  }

  async give(address: string, container: string, over: { readonly handMade?: true } = {}): Promise<void> {
    const claim = { ...claimOf(address, container), ...over };
    await this.store.create("claim", claim);
    for (const one of reservationsOf(claim)) await this.store.create("reservation", one);
  }

  /** A host writes the record under the name. */
  async write(record: HostRecord): Promise<void> {
    const there = await this.registry.get("host-c");
    assert.notEqual(await this.registry.put("host-c", record, there?.revision ?? 0), "changed");
  }

  async fence(): Promise<string | undefined> {
    const { store, registry } = this;
    let lists = 0;
    const etcd = {
      store,
      claims: async () => {
        await this.beforeList(++lists);
        return await allOf(store, "claim");
      },
      registry: {
        get: (name: string) => registry.get(name),
        list: () => registry.list(),
        put: async (name: string, record: HostRecord, seen: number) => {
          await this.beforeMark();
          const put = await registry.put(name, record, seen);
          await this.afterMark();
          return put;
        },
      },
    };
    const folder = await Folder.empty(this.#test);
    const refusal = await fenceHost(etcd, "host-c", { context: folder.context(this.out), confirmed: true });
    return refusal?.message;
  }

  async left(): Promise<readonly string[]> {
    return (await allOf(this.store, "claim")).map(({ key }) => key);
  }
}

describe("berthctl fence --yes", () => {
  it("releases what the host had, also what it gave while it was watched", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.beforeMark = () => scene.give("10.20.0.71", "late");
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), []);
    assert.match(scene.out.stdout, /host host-c is fenced, 2 claims are released\n$/);
  });

  it("says of a claim made by hand that it is not released, and who has it next", async (t) => {
    const scene = await Scene.of(t, OLD);
    await scene.give("10.20.0.73", "recorder", { handMade: true });
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), ["shop/recorder"]);
    assert.match(
      scene.out.stdout,
      /; its containers have 2 addresses\n {2}10\.20\.0\.73 of shop\/recorder, which was made by hand, is not released: the next container of that name has it, on any host\n/,
    );
    assert.match(scene.out.stdout, /host host-c is fenced, 1 claim is released\n$/);
  });

  it("leaves what a new host of the name has been given since the mark", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.afterMark = async () => {
      await scene.write(NEW);
      await scene.give("10.20.0.72", "new");
    };
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), ["shop/new"]);
    assert.match(scene.out.stdout, /fenced, 1 claim is released\na host is called host-c again and serves/);
  });

  it("leaves a claim of the host that was changed since it was listed", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.afterMark = async () => {
      await scene.write({ ...OLD, process: "back" }); // its containers have ended, so it serves again
      const seen = await scene.store.get("claim", "shop/old");
      assert.ok(seen);
      const next = { ...seen.record, binding: bindingTo("next", "host-c", { podUID: "" }) };
      assert.equal((await scene.store.replace("claim", seen, next)).kind, "replaced");
    };
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), ["shop/old"]);
    assert.match(scene.out.stdout, /host host-c is fenced, 0 claims are released/);
  });

  it("of a host that is fenced goes on where an earlier call ended", async (t) => {
    const scene = await Scene.of(t, FENCED);
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), []);
    assert.equal(scene.out.stderr, "");
  });

  it("of a host that was fenced leaves everything to a new one of the name", async (t) => {
    const scene = await Scene.of(t, FENCED);
    scene.beforeList = async (time) => {
      if (time === 2) await scene.write(NEW);
    };
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), ["shop/old"]);
  });

  it("goes on where another person has marked the same host meanwhile", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.beforeMark = () => scene.write(FENCED);
    assert.equal(await scene.fence(), undefined);
    assert.deepEqual(await scene.left(), []);
    assert.match(scene.out.stdout, /host host-c is fenced, 1 claim is released\n$/);
  });

  it("refuses where a new host of the name has followed another person's mark", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.beforeMark = async () => {
      await scene.write(FENCED);
      await scene.write({ ...NEW, fenced: { at: NOW, by: "another" } });
    };
    assert.match((await scene.fence()) ?? "", /^host host-c is alive/);
    assert.deepEqual(await scene.left(), ["shop/old"]);
  });

  it("refuses a host that is alive", async (t) => {
    const scene = await Scene.of(t, OLD);
    scene.beforeMark = () => scene.write({ ...OLD, seen: NOW + 1 });
    assert.match((await scene.fence()) ?? "", /^host host-c is alive/);
    assert.deepEqual(await scene.left(), ["shop/old"]);
  });
});
