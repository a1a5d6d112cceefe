// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import { FailingStore, type Failure } from "../../test/support/failing-store.ts";
import { addrs, claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { IP_CLAIM } from "../apply/kinds.ts";
import { subjectOf } from "../apply/object-ref.ts";
import { databaseOf, loadCache } from "../backend/embedded-backend.ts";
import { attachment, type Contents, Folder } from "../testing/folder.ts";
import { movesHere } from "./hand-over-here.ts";
import type { Moved, Transfer } from "./transfer.ts";

const old = byHand("lic", { addresses: addrs("10.20.0.70") });
/** As a call that was broken off leaves it. */
const waiting = byHand("lic2", { addresses: [], nonce: "", takesOver: "lic" });
const done = byHand("lic2", { addresses: addrs("10.20.0.70"), nonce: "n2", takesOver: "lic" });

function byHand(name: string, over: Partial<Claim>): Claim {
  return claimRecord({ name, identity: { kind: "Pod", apiVersion: "v1", name }, handMade: true, ...over });
}

function folder(t: TestContext, over: Contents = {}): Promise<Folder> {
  return Folder.of(t, { pools: [DB_POOL], claims: [old], reservations: reservationsOf(old), ...over });
}

async function holder(data: Folder): Promise<unknown> {
  return JSON.parse((await data.call("who", "10.20.0.70", "-o", "json")).stdout).claim;
}

const say = (data: Folder, ...more: readonly string[]) =>
  data.call("release", "shop/lic", "--to", "lic2", ...more);
const TAKES_OVER = "ipclaim/shop/lic2 takes over from ipclaim/shop/lic, which is released";

/** One attempt on the folder's database, through `by`. */
async function attempt(data: Folder, by: (store: Store) => Store): Promise<Moved> {
  const database = openDatabase(databaseOf(data.dataDir));
  const { clock, random } = data.context().io;
  const real = openSqliteStore(database, { clock, random, log: noopLogger });
  try {
    const seen = await real.get("claim", "shop/lic");
    assert.ok(seen);
    const metadata = { namespace: "shop", name: "lic2" };
    const spec = { takesOver: "lic", request: { addresses: ["10.20.0.70"] } };
    const json = { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata, spec };
    const transfer = { seen, subject: subjectOf({ kind: IP_CLAIM, json }) } as Transfer;
    const view = await loadCache(real);
    const context = { store: by(real), view, clock, random, log: noopLogger, serial: new KeyedMutex() };
    const world = {
      pod: async () => undefined,
      workload: async () => "never admitted" as const,
      namespace: async (name: string) => bareNamespace(name),
      fenced: async () => false,
    };
    return await movesHere({ world }).move(context, transfer);
  } finally {
    await real.close();
    database.close();
  }
}

describe("berthctl release --to", () => {
  it("is done once for two who say it at once", async (t) => {
    const data = await folder(t);
    for (const { code, stderr } of await Promise.all([say(data), say(data)])) {
      assert.equal(stderr, "");
      assert.equal(code, 0);
    }
    assert.equal(await holder(data), "shop/lic2");
    assert.equal((await data.call("check")).code, 0);
  });

  for (const failure of ["before", "after"] as const satisfies readonly Failure[]) {
    for (const write of [1, 2, 3, 4, 5, 6]) {
      it(`is finished by a repeat when it ended ${failure} its write ${write}`, async (t) => {
        const data = await folder(t);
        const ended = attempt(data, (store) => new FailingStore(store, write, failure));
        await ended.catch((error: unknown) => assert.match(String(error), /was killed here/));
        const { code, stderr } = await say(data);
        assert.deepEqual([code, stderr], [0, ""]);
        assert.equal(await holder(data), "shop/lic2");
        assert.equal((await data.call("check")).code, 0);
      });
    }
  }

  it("goes on where the old claim is gone, and says so", async (t) => {
    const data = await folder(t, { claims: [waiting] });
    const dry = await say(data, "--dry-run");
    assert.deepEqual(dry, { code: 0, stdout: `${TAKES_OVER} (dry run)   10.20.0.70\n`, stderr: "" });
    assert.equal(await holder(data), "shop/lic");
    assert.deepEqual(await say(data), { code: 0, stdout: `${TAKES_OVER}   10.20.0.70\n`, stderr: "" });
    assert.equal(await holder(data), "shop/lic2");
  });

  for (const operand of ["shop/lic", "10.20.0.70"]) {
    it(`of ${operand} is done when it was done before`, async (t) => {
      const data = await folder(t, { claims: [done], reservations: reservationsOf(done) });
      const again = await data.call("release", operand, "--to", "shop/lic2");
      assert.deepEqual(again, { code: 0, stdout: `${TAKES_OVER}   10.20.0.70\n`, stderr: "" });
    });
  }

  it("does not go on while a sandbox has the old claim's address, unless it is forced", async (t) => {
    const attachments = [attachment("lic", "10.20.0.70", "shop/lic")];
    const data = await folder(t, { claims: [waiting], attachments });
    const { code, stderr } = await say(data);
    assert.equal(code, 1);
    assert.match(stderr, /^Error: claim shop\/lic \(.*\) is bound to pod lic/);
    assert.equal((await say(data, "--force")).code, 0);
  });

  it("leaves the new claim to a repeat when it is refused after the old one is gone", async (t) => {
    const closed = { ...DB_POOL, spec: { ...DB_POOL.spec, namespaceSelector: { matchLabels: { a: "b" } } } };
    const data = await folder(t, { pools: [closed], claims: [waiting] });
    const { code, stderr } = await say(data);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^Error: claim lic is released, and shop\/lic2, which takes over from it, has no addresses: /,
    );
    assert.equal(await holder(data), "shop/lic");
    assert.match((await data.call("get", "claims", "-A")).stdout, /lic2/);
    assert.equal((await data.call("release", "shop/lic2")).code, 0);
  });

  it("takes back what it has made when the old claim has changed, and nothing that another call made", async (t) => {
    for (const [claims, isThere] of [
      [[old], false],
      [[old, waiting], true],
    ] as const) {
      const data = await folder(t, { claims });
      const moved = await attempt(data, (store) =>
        intercepted(store, "remove", async (key) => {
          if (key === "shop/lic") await changed(store);
        }),
      );
      assert.equal(moved, "changed");
      const there = (await data.call("get", "claims", "-n", "shop", "-o", "json")).stdout;
      assert.equal(there.includes('"lic2"'), isThere);
    }
  });

  it("makes the new claim again when it is taken back in the midst of it", async (t) => {
    const data = await folder(t);
    let times = 0;
    await attempt(data, (store) =>
      intercepted(store, "replace", async (key) => {
        const made = await store.get("claim", "shop/lic2");
        if (key === "10.20.0.70" && times++ === 0 && made) await store.remove("claim", made);
      }),
    );
    const { items } = JSON.parse((await data.call("get", "claims", "-n", "shop", "-o", "json")).stdout);
    assert.deepEqual(
      items.map(({ spec }: { spec: Claim }) => [spec.handMade, spec.takesOver, spec.addresses]),
      [[true, "lic", ["10.20.0.70"]]],
    );
  });
});

/** Somebody else writes the old claim. */
async function changed(store: Store): Promise<void> {
  const seen = await store.get("claim", "shop/lic");
  if (seen !== undefined) await store.report(seen, { message: "looked at" });
}

/** Does `first` before each call of the verb, with the key of what it is about. */
function intercepted(store: Store, verb: "remove" | "replace", first: (key: string) => Promise<void>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== verb) return value.bind(target);
      return async (...given: readonly unknown[]) => {
        await first((given[1] as { key: string }).key);
        return await Reflect.apply(value, target, given);
      };
    },
  });
}
