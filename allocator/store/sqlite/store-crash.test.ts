// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, it, type TestContext } from "node:test";
import { createClock } from "../../../system/clock.ts";
import { createRandom } from "../../../system/random.ts";
import { noopLogger } from "../../base/ports.ts";
import { bareClaim } from "../contract/samples.ts";
import { listed } from "../contract/subject.ts";
import type { Store } from "../store.ts";
import { openDatabase } from "./database.ts";
import { openSqliteStore } from "./store.ts";

/** What a child process runs before its own lines: a store in `path`, and a way to die without a word. */
function prelude(path: string): string {
  const from = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
  return `
    import { writeSync } from "node:fs";
    import { createClock } from ${from("../../../system/clock.ts")};
    import { createRandom } from ${from("../../../system/random.ts")};
    import { noopLogger } from ${from("../../base/ports.ts")};
    import { bareClaim, nth, reservationOf } from ${from("../contract/samples.ts")};
    import { openDatabase } from ${from("./database.ts")};
    import { openSqliteStore } from ${from("./store.ts")};
    const die = () => process.kill(process.pid, "SIGKILL");
    let beforeCommit = () => {};
    const database = openDatabase(${JSON.stringify(path)}, { beforeCommit: () => beforeCommit() });
    const store = openSqliteStore(database, { clock: createClock(), random: createRandom(), log: noopLogger });
    const say = (words) => writeSync(1, words + "\\n");`;
}

function child(t: TestContext, path: string, lines: string) {
  const script = prelude(path) + lines;
  const options = { stdio: ["ignore", "pipe", "inherit"] as ["ignore", "pipe", "inherit"] };
  const running = spawn(process.execPath, ["--input-type=module", "-e", script], options);
  t.after(() => running.kill("SIGKILL"));
  return running;
}

function fileIn(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-crash-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "berth.db");
}

/** Opens what is left; the database is checked for damage by that. */
function reopen(t: TestContext, path: string): { store: Store; logged: () => number } {
  const database = openDatabase(path);
  const store = openSqliteStore(database, { clock: createClock(), random: createRandom(), log: noopLogger });
  t.after(async () => {
    await store.close();
    database.close();
  });
  return { store, logged: () => database.read((sql) => sql.all("SELECT revision FROM changes")).length };
}

describe("sqlite store: a process that dies", () => {
  it("in a loop of creates has kept every one that it said was created", async (t) => {
    const path = fileIn(t);
    const looping = child(
      t,
      path,
      `for (let i = 0; ; i += 8) {
         const names = Array.from({ length: 8 }, (_, j) => nth(i + j));
         await Promise.all(names.map(async (address) => {
           const { stored } = await store.create("reservation", reservationOf(address));
           say(stored.key + " " + stored.uid);
         }));
       }`,
    );
    const said: string[] = [];
    for await (const line of createInterface({ input: looping.stdout })) {
      said.push(line);
      if (said.length === 500) looping.kill("SIGKILL");
    }
    assert.ok(said.length >= 500);
    const { store, logged } = reopen(t, path);
    const there = await listed(store, "reservation");
    const kept = new Set(there.map(({ key, uid }) => `${key} ${uid}`));
    assert.deepEqual(
      said.filter((line) => !kept.has(line)),
      [],
    );
    assert.equal(there.length % 8, 0, "batches are kept whole or not at all");
    assert.equal(logged(), there.length);
  });

  const verbs: readonly (readonly [string, string, (store: Store) => Promise<boolean>])[] = [
    [
      "create",
      'store.create("claim", bareClaim("mysql-1"))',
      async (store) => (await store.get("claim", "shop/mysql-1")) !== undefined,
    ],
    [
      "replace",
      'store.replace("claim", seen, bareClaim("mysql-0", { nonce: "n2" }))',
      async (store) => (await store.get("claim", "shop/mysql-0"))?.record.nonce === "n2",
    ],
    [
      "report",
      'store.report(seen, { message: "held" })',
      async (store) => (await store.get("claim", "shop/mysql-0"))?.record.status.message === "held",
    ],
    [
      "remove",
      'store.remove("claim", seen)',
      async (store) => (await store.get("claim", "shop/mysql-0")) === undefined,
    ],
  ];
  for (const [verb, write, isDone] of verbs) {
    for (const moment of ["before", "after"] as const) {
      it(`${moment} the commit of a ${verb} has done ${moment === "before" ? "nothing" : "all"} of it`, async (t) => {
        const path = fileIn(t);
        const dying = child(
          t,
          path,
          `const { stored: seen } = await store.create("claim", bareClaim("mysql-0"));
           ${moment === "before" ? "beforeCommit = die;" : "database.onCommit(die);"}
           await ${write};
           say("alive");`,
        );
        let said = "";
        dying.stdout.on("data", (chunk: Buffer) => {
          said += chunk.toString();
        });
        assert.deepEqual(await once(dying, "close"), [null, "SIGKILL"]);
        assert.equal(said, "");
        const { store, logged } = reopen(t, path);
        assert.equal(await isDone(store), moment === "after");
        assert.equal(logged(), moment === "after" ? 2 : 1);
        const first = await store.get("claim", "shop/mysql-0");
        if (moment === "before") assert.deepEqual(first?.record, bareClaim("mysql-0"));
      });
    }
  }
});
