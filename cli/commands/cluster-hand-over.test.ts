// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { addrs, claimRecord } from "../../test/support/fixtures.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { IP_CLAIM } from "../apply/kinds.ts";
import { subjectOf } from "../apply/object-ref.ts";
import type { Cluster } from "../backend/cluster-backend.ts";
import type { Io } from "../terminal/command.ts";
import { movesInCluster } from "./cluster-hand-over.ts";
import type { Moved, Transfer } from "./transfer.ts";

function byHand(name: string, over: Partial<Claim>): Claim {
  return claimRecord({ name, identity: { kind: "Pod", apiVersion: "v1", name }, handMade: true, ...over });
}

const old = byHand("lic", {});
const waiting = byHand("lic2", { addresses: [], nonce: "", takesOver: "lic" });

/** A cluster whose API server is a store in memory, and what happens there before the old claim is deleted. */
class Scene {
  readonly store: Store;
  /** What was warned of. */
  stderr = "";
  readonly #deps = { clock: new ManualClock(), random: new SeededRandom(1), log: noopLogger };

  constructor(test: TestContext) {
    const database = openDatabase(":memory:");
    this.store = openSqliteStore(database, this.#deps);
    test.after(() => database.close());
  }

  async move(before: (seen: Stored<"claim">) => Promise<void>): Promise<Moved> {
    const { store } = this;
    const seen = await store.get("claim", "shop/lic");
    assert.ok(seen);
    const metadata = { namespace: "shop", name: "lic2" };
    const spec = { takesOver: "lic", request: { addresses: ["10.20.0.70"] } };
    const json = { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata, spec };
    const transfer = { seen, subject: subjectOf({ kind: IP_CLAIM, json }) } as Transfer;
    const call = async () => {
      const made = await store.create("claim", waiting);
      return made.kind === "created"
        ? { status: 201, body: { metadata: { ...metadata, uid: made.stored.uid } } }
        : { status: 409, body: { kind: "Status", reason: "AlreadyExists", message: "exists", code: 409 } };
    };
    const deleting: Pick<Store, "remove"> = {
      remove: async (kind, claim) => {
        if (claim.key === "shop/lic") await before(seen);
        return await store.remove(kind, claim);
      },
    };
    const stderr = { write: (text: string) => (this.stderr += text) };
    const io: unknown = { ...this.#deps, stderr };
    const cluster: unknown = { store, place: "cluster", connection: { call } };
    const context = { ...this.#deps, store: deleting } as unknown as Context;
    return await movesInCluster(cluster as Cluster, io as Io).move(context, transfer);
  }

  /** As another call and a controller do it. */
  async takeOver(seen: Stored<"claim">): Promise<void> {
    assert.equal((await this.store.remove("claim", seen)).kind, "removed");
    const there = await this.store.get("claim", "shop/lic2");
    assert.ok(there);
    const next = { ...there.record, nonce: "n2", addresses: addrs("10.20.0.70") };
    assert.equal((await this.store.replace("claim", there, next)).kind, "replaced");
  }

  /** Somebody else writes the claim. */
  async touch(key: string): Promise<void> {
    const seen = await this.store.get("claim", key);
    if (seen !== undefined) await this.store.report(seen, { message: "looked at" });
  }

  async has(key: string): Promise<boolean> {
    return (await this.store.get("claim", key)) !== undefined;
  }
}

describe("berthctl release --to in a cluster", () => {
  for (const [whose, claims] of [
    ["another call's", [old, waiting]],
    ["its own", [old]],
  ] as const) {
    it(`leaves ${whose} new claim when another call has deleted the old one`, async (t) => {
      const scene = new Scene(t);
      for (const claim of claims) await scene.store.create("claim", claim);
      assert.equal(await scene.move((seen) => scene.takeOver(seen)), "changed");
      assert.deepEqual((await scene.store.get("claim", "shop/lic2"))?.record.addresses, ["10.20.0.70"]);
    });
  }

  it("leaves a new claim that waits when another call has deleted the old one", async (t) => {
    const scene = new Scene(t);
    await scene.store.create("claim", old);
    const moved = await scene.move(async (seen) => {
      await scene.store.remove("claim", seen);
    });
    assert.equal(moved, "changed");
    assert.ok(await scene.has("shop/lic2"));
  });

  it("says that the new claim is there and waits when the old one could not be deleted", async (t) => {
    const scene = new Scene(t);
    await scene.store.create("claim", old);
    const moving = scene.move(async () => {
      throw new BerthError("STORE_UNAVAILABLE", 'failed calling webhook "claims.berth.dev": EOF');
    });
    await assert.rejects(moving, /failed calling webhook/);
    assert.ok(await scene.has("shop/lic2"));
    assert.equal(
      scene.stderr,
      "Warning: ipclaim/shop/lic2 is there, and has the addresses as soon as claim shop/lic is deleted: say the same again, or take it back with: kubectl delete ipclaim lic2 -n shop\n",
    );
  });

  for (const [claims, isLeft] of [
    [[old], false],
    [[old, waiting], true],
  ] as const) {
    const what = isLeft ? "leaves a new claim that it has not made" : "takes the new claim back";
    it(`${what} when the old one has changed`, async (t) => {
      const scene = new Scene(t);
      for (const claim of claims) await scene.store.create("claim", claim);
      const moved = await scene.move(async () => {
        await scene.touch("shop/lic");
        await scene.touch("shop/lic2"); // a controller says that it waits
      });
      assert.equal(moved, "changed");
      assert.equal(await scene.has("shop/lic2"), isLeft);
    });
  }
});
