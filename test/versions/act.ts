// SPDX-License-Identifier: Apache-2.0
// node act.ts ROOT DATABASE ACT: does something with a stack's file, by the code of the version in ROOT.
import { existsSync } from "node:fs";
import { join } from "node:path";

const [root = "", path = "", act = ""] = process.argv.slice(2);

/** A module of that version: files and some of what they export had other names before the rooms were made. */
async function load(file: string, before: string, renamed: Readonly<Record<string, string>> = {}) {
  if (existsSync(join(root, file))) return await import(join(root, file));
  const module = await import(join(root, before));
  return {
    ...module,
    ...Object.fromEntries(Object.entries(renamed).map(([now, old]) => [now, module[old]])),
  };
}

const { openDatabase }: typeof import("../../allocator/store/sqlite/database.ts") = await load(
  "allocator/store/sqlite/database.ts",
  "allocator/store/database.ts",
);
const { openSqliteStore }: typeof import("../../allocator/store/sqlite/store.ts") = await load(
  "allocator/store/sqlite/store.ts",
  "allocator/store/sqlite.ts",
);
const { bind }: typeof import("../../allocator/lifecycle/bind.ts") = await load(
  "allocator/lifecycle/bind.ts",
  "allocator/bind.ts",
);
const { release }: typeof import("../../allocator/lifecycle/release.ts") = await load(
  "allocator/lifecycle/release.ts",
  "allocator/release.ts",
);
const { RecordCache }: typeof import("../../allocator/cache/cache.ts") = await load(
  "allocator/cache/cache.ts",
  "allocator/mirror.ts",
  { RecordCache: "Mirror" },
);
const { KeyedMutex }: typeof import("../../allocator/base/keyed-mutex.ts") = await load(
  "allocator/base/keyed-mutex.ts",
  "allocator/mutex.ts",
);
const { noopLogger }: typeof import("../../allocator/base/ports.ts") = await load(
  "allocator/base/ports.ts",
  "allocator/ports.ts",
  { noopLogger: "silent" },
);
const { createClock }: typeof import("../../system/clock.ts") = await load(
  "system/clock.ts",
  "system/clock.ts",
);
const { createRandom }: typeof import("../../system/random.ts") = await load(
  "system/random.ts",
  "system/random.ts",
);
const { Journal }: typeof import("../../ipam-plugin/agent/journal/journal.ts") = await load(
  "ipam-plugin/agent/journal/journal.ts",
  "ipam-plugin/agent/journal.ts",
);
const { addr, bareClaim, poolOf, reservationOf }: typeof import("../../allocator/store/contract/samples.ts") =
  await load("allocator/store/contract/samples.ts", "allocator/store/contract-samples.ts");

const KEY = "shop/mysql-0";
const database = openDatabase(path);
const deps = { clock: createClock(), random: createRandom(), log: noopLogger };
const store = openSqliteStore(database, deps);
const context = { store, view: new RecordCache(noopLogger), serial: new KeyedMutex(), ...deps };

async function claim() {
  const found = await store.get("claim", KEY);
  if (found === undefined) throw new Error("the claim is gone");
  return found;
}

const ACTS: Readonly<Record<string, () => Promise<void>>> = {
  /** A pool, and an address of it that is reserved for an ordinal. */
  async write() {
    const addresses = [addr("10.20.0.51")];
    await store.create("pool", poolOf("db"));
    await store.create("reservation", reservationOf(addr("10.20.0.51")));
    await store.create("claim", bareClaim("mysql-0", { addresses, nonce: "n1", request: { addresses } }));
    new Journal(database);
  },
  /** A pod gets the claim, its sandbox comes and goes, and nothing needs it for a while. */
  async serve() {
    for (const kind of ["pool", "claim", "reservation"] as const) {
      let records = 0;
      for await (const _ of store.list(kind)) records++;
      if (records !== 1) throw new Error(`${records} of ${kind}`);
    }
    const pod = { name: "mysql-0", uid: "p-1", node: "node-a", token: "" };
    const bound = await bind(context, KEY, pod, async () => ({ fenced: false, holdExpired: false }));
    if ("kind" in bound) throw new Error(bound.message);
    const at = { node: "node-a", containerID: "c1", interface: "eth0", podUID: "p-1", since: 1 };
    for (const detached of [false, true]) {
      // earlier versions write no status without one
      const phase = { phase: detached ? "Detached" : "Attached" };
      await store.report(await claim(), { ...phase, attachment: { ...at, detached } });
    }
    const seen = await claim();
    await store.replace("claim", seen, { ...seen.record, retained: { since: 2, because: "scaled" } });
    new Journal(database).load();
  },
  /** The node has given an address of its block back, which another node has now. */
  async part() {
    const block = {
      cidr: "10.20.0.4/30",
      uid: "u",
      pool: "db",
      holes: ["10.20.0.5/32"],
      bootId: "b",
      nodeUID: "",
      returningAt: 0,
    };
    await new Journal(database).write({ blocks: { put: [block], parted: true } });
  },
  async release() {
    await release(context, await claim());
  },
};

await ACTS[act]?.();
await store.close();
database.close();
