// SPDX-License-Identifier: Apache-2.0
// A disk that tears or forgets: docs/recovery.md says what to do then, and is followed here.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { ApiServer } from "../support/api-server.ts";
import { pod } from "../support/manifests.ts";
import { SeededRandom } from "../support/random.ts";
import { runsOf } from "../support/runs.ts";
import { networkOf, Runtime, sandboxOf } from "../support/runtime.ts";
import { defectsOf } from "./defects.ts";
import { Wreck, whyNot } from "./wreck.ts";

const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);
const PODS = 12;

/** A sector of it is another. */
function spoiled(log: Buffer, from: number): Buffer {
  return Buffer.from(log.map((byte, at) => (at >= from && at < from + 512 ? byte ^ 0xff : byte)));
}

describe("the log of a killed stack", () => {
  const random = new SeededRandom(SEED);
  let wreck: Wreck;

  before(async () => {
    console.log(`seed ${SEED}`);
    wreck = await Wreck.make(PODS);
  });
  after(() => wreck?.remove());
  afterEach(() => wreck.stack.killIfRunning());

  it("has everything that was answered, however what came after it was torn", async () => {
    const [begin = 0, end = 0] = wreck.commits.slice(-2);
    assert.ok(wreck.answered.every(({ logLength }) => logLength <= end));
    for (let i = 0; i < runsOf(20, 6); i++) {
      const torn = Buffer.from(wreck.log.subarray(0, end + random.below(1 + wreck.log.length - end)));
      const more = Buffer.from(Array.from({ length: random.below(9_000) }, () => random.below(256)));
      wreck.restore(Buffer.concat([torn, more]));
      wreck.open();
      assert.deepEqual(await wreck.lost(end), []);
    }
    // The last transaction itself may have been on its way to the disk.
    for (let i = 0; i < runsOf(20, 6); i++) {
      wreck.restore(wreck.log.subarray(0, begin + random.below(end - begin)));
      wreck.open();
      assert.deepEqual(await wreck.lost(begin), []);
    }
  });

  it("that ends too early has everything that was answered until then, and no address twice", async () => {
    const first = wreck.answered[0]?.logLength ?? 0;
    for (let i = 0; i < runsOf(30, 8); i++) {
      const end = first + random.below(wreck.log.length - first);
      wreck.restore(wreck.log.subarray(0, end));
      wreck.open();
      assert.deepEqual(await wreck.lost(end), []);
      assert.deepEqual(await defectsOf(wreck.stack), []);
    }
  });

  it("in which a bit changed is refused, unless only the last two transactions can have suffered", async () => {
    const certain = wreck.commits.at(-3) ?? 0;
    const flips = runsOf(80, 24);
    let refused = 0;
    for (let i = 0; i < flips; i++) {
      const changed = Buffer.from(wreck.log);
      const at = random.below(changed.length);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << random.below(8)), at);
      wreck.restore(changed);
      try {
        wreck.open();
        assert.ok(at >= certain, `a change at ${at} of ${changed.length} was not noticed`);
        assert.deepEqual(await wreck.lost(certain), []);
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "STATE_CORRUPT")) throw error;
        refused++;
      }
    }
    console.log(`${flips} changed bits, ${refused} refused`);
    assert.ok(refused > 0.75 * flips);
  });

  it("that is damaged keeps the stack from starting, until a backup is in its place", async () => {
    wreck.restore(spoiled(wreck.log, wreck.log.length / 2));
    assert.match(
      await whyNot(wreck.stack),
      /ended with 2 .*\n.*berth\.db is damaged \(its -wal has lost commits that were safe on the disk\); stop Berth, move it away together with its -wal and -shm, and put a backup in its place/,
    );
    wreck.restore();
    await wreck.stack.start();
    assert.deepEqual(await wreck.lost(wreck.log.length), []);
    assert.equal(await wreck.stack.findings(), "");
    await wreck.stack.kill9();
  });

  it("that is damaged can be given up behind the damage, and what is before it serves", async () => {
    const at = Math.floor(wreck.log.length / 2);
    wreck.restore(spoiled(wreck.log, at));
    wreck.edit("PRAGMA wal_checkpoint(TRUNCATE)");
    assert.match(
      await whyNot(wreck.stack),
      /is an older copy of the one that has served this node since it booted/,
    );
    await wreck.adopt();
    await wreck.stack.start();
    assert.deepEqual(await wreck.lost(at), []);
    const runtime = new Runtime({ socket: wreck.stack.socket, network: networkOf() });
    for (const { sandbox } of wreck.answered) if (sandbox !== undefined) await runtime.detach(sandbox);
    assert.deepEqual(await wreck.stack.attachedContainers(), []);
    await wreck.stack.kill9();
  });
});

describe("a record that cannot be decoded", () => {
  let wreck: Wreck;

  before(async () => {
    wreck = await Wreck.make(3);
  });
  after(() => wreck?.remove());
  afterEach(async () => {
    await wreck.stack.killIfRunning();
    wreck.restore();
    wreck.forgetBoot();
  });

  const claims = "kind = 'claim' AND key = 'shop/p1'";
  const reservations = "kind = 'reservation' AND key = '10.20.0.11'";
  const attachments = "pod_name = 'p1'";
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [
      "claim",
      `UPDATE records SET body = '{"v":1,' WHERE ${claims}`,
      /the stored claim shop\/p1 cannot be decoded: .*; restore it from a backup/,
    ],
    [
      "reservation",
      `UPDATE records SET body = replace(body, '0.11', '0.99') WHERE ${reservations}`,
      /the stored reservation 10\.20\.0\.11 cannot be decoded: its text is that of 10\.20\.0\.99; restore it/,
    ],
    [
      "attachment",
      `UPDATE attachments SET addresses = '[{' WHERE ${attachments}`,
      /the journal's addresses of container [0-9a-f]{64}, interface eth0, network net cannot be read; restore it from a backup/,
    ],
  ];
  for (const [what, damage, words] of cases) {
    it(`keeps the stack from starting and is named: a ${what}; its pod can be made anew`, async () => {
      wreck.edit(damage);
      assert.match(await whyNot(wreck.stack), words);
      wreck.edit(
        `DELETE FROM records WHERE ${claims} OR ${reservations}`,
        `DELETE FROM attachments WHERE ${attachments}`,
      );
      await wreck.stack.start();
      await makeAnew("p1", "10.20.0.11/24");
      const others = (await wreck.lost(wreck.log.length)).filter((lost) => !lost.startsWith("p1 "));
      assert.deepEqual(others, []);
      assert.equal(await wreck.stack.findings(), "");
      await wreck.stack.kill9();
    });
  }

  async function makeAnew(name: string, cidr: string): Promise<void> {
    const { endpoint, socket } = wreck.stack;
    const deleted = await wreck.stack.berthctl("delete", `pod/shop/${name}`);
    assert.deepEqual([deleted.rc, deleted.stderr], [0, ""]);
    const api = new ApiServer(endpoint);
    const annotations = { "berth.dev/ips": cidr.split("/", 1)[0] ?? "" };
    const kept = await api.create(pod("shop", name, annotations));
    api.close();
    const runtime = new Runtime({ socket, network: networkOf() });
    assert.deepEqual(await runtime.attach(sandboxOf(kept)), [cidr]);
  }

  it("does not keep it from starting when it is a pod: its sandbox waits until the pod is made anew", async () => {
    wreck.edit("UPDATE objects SET body = '{' WHERE kind = 'Pod' AND name = 'p1'");
    await wreck.stack.start();
    const runtime = new Runtime({ socket: wreck.stack.socket, network: networkOf() });
    const answer = await runtime.add(sandboxOf({ namespace: "shop", name: "p1", uid: "" }));
    assert.deepEqual(answer, {
      kind: "failed",
      code: 5,
      msg: "the stored object Pod shop/p1 cannot be read; delete it and create it again",
      details: "STATE_CORRUPT",
    });
    for (const { pod: name, sandbox } of wreck.answered)
      if (name === "p1" && sandbox !== undefined) await runtime.detach(sandbox);
    await makeAnew("p1", "10.20.0.11/24");
    await wreck.stack.kill9();
  });

  it("keeps the stack from starting when it is a pool, until the pool is applied anew", async () => {
    wreck.edit("UPDATE records SET body = 'null' WHERE kind = 'pool'");
    assert.match(
      await whyNot(wreck.stack),
      /the stored pool db cannot be decoded: .*; restore it from a backup/,
    );
    wreck.edit("DELETE FROM records WHERE kind = 'pool'");
    await wreck.stack.start();
    assert.deepEqual(await wreck.lost(wreck.log.length), []);
    assert.equal(await wreck.stack.findings(), "");
    await wreck.stack.kill9();
  });
});
