// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { createRandom } from "../../../system/random.ts";
import { address } from "../testing/node-bench.ts";
import { AT, attachment, database, failCommits, open, SCOPE, setUp } from "../testing/opened-journal.ts";
import { detached, tombstoneFor } from "./attachment.ts";
import { BLOCK_STEPS, BLOCKS } from "./owned-blocks.ts";

const BEFORE_NETNS_ID =
  `network data_dir container_id interface state source addresses routes dns netns netns_seen pod_namespace
  pod_name pod_uid claim start_ns attached_at boot_id detached_at deadline_ns notice_pending pool`.split(
    /\s+/,
  );

/** Frames of the write-ahead log that end a commit say how many pages the file has then. */
function commitsIn(log: Buffer): number {
  const frame = 24 + log.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) commits++;
  return commits;
}

describe("journal", () => {
  setUp();

  it("waits for the disk once for all tables of a new one", async () => {
    open();
    assert.equal(commitsIn(await readFile(`${database.path}-wal`)), 1);
  });

  it("is refused by versions that know of no single addresses of blocks, while there are any", async () => {
    const asBefore = () => database.migrate(BLOCKS, BLOCK_STEPS);
    const block = {
      cidr: "10.0.0.4/30",
      uid: "u",
      pool: "db",
      holes: [],
      bootId: "boot-1",
      nodeUID: "",
      returningAt: 0,
    };
    const other = { ...block, cidr: "10.0.0.8/30" };
    const journal = open();
    await journal.write({ blocks: { put: [block, other] } });
    asBefore();
    await journal.write({ blocks: { put: [{ ...block, holes: ["10.0.0.5/32"] }], parted: true } });
    assert.throws(asBefore, { code: "CONFIG_INVALID" });
    database.close();
    const again = open();
    await again.write({ blocks: { put: [other], parted: true } });
    await again.write({ blocks: { gone: [block] } });
    assert.equal(again.load().blocks.length, 1);
    assert.throws(asBefore, { code: "CONFIG_INVALID" });
    await again.write({ blocks: { gone: [other] } });
    asBefore();
  });

  it("is written by the process that has taken it last, whose reading has all that others wrote", async () => {
    const random = createRandom();
    const [first, second] = [open(), open()];
    await first.take(random);
    await first.write({ put: [attachment("before")] });
    await second.take(random);
    assert.deepEqual([first.isOurs, second.isOurs], [false, true]);
    await assert.rejects(first.write({ put: [attachment("late")] }), {
      code: "NOT_READY",
      message: /taken over/,
    });
    assert.equal(first.failing, true);
    await second.write({ put: [attachment("after")] });
    assert.deepEqual(
      second.load().attachments.map(({ containerID }) => containerID),
      ["after", "before"],
    );
    await first.take(random);
    await first.probe(1);
    assert.equal(first.failing, false);
  });

  it("gives back what was written, after it was closed and opened again", async () => {
    const full = attachment("full");
    const bare = tombstoneFor({ scope: SCOPE, containerID: "bare", interface: "eth1" }, AT);
    const position = { scope: SCOPE, rangeSet: 1, address: address("fd00::5") };
    await open().write({ put: [full, bare], positions: [position] });
    database.close();
    const { attachments, positions } = open().load();
    assert.deepEqual(
      new Map(attachments.map((one) => [one.containerID, one])),
      new Map([
        ["full", full],
        ["bare", bare],
      ]),
    );
    assert.deepEqual(positions, [position]);
  });

  it("keeps all of a change or nothing of it", async () => {
    const journal = open();
    const fault = new BerthError("STORE_FULL", "full");
    failCommits(fault);
    await assert.rejects(journal.write({ put: [attachment("a")] }), fault);
    assert.deepEqual([journal.failing, journal.load().attachments], [true, []]);
    failCommits(undefined);
    await journal.probe(1);
    assert.equal(journal.failing, false);
  });

  it("counts a detachment as told, and forgets it, only while the place is detached", async () => {
    const journal = open();
    const attached = attachment("a");
    const tombstone = detached(attached, AT);
    await journal.write({ put: [tombstone] });
    await journal.write({ forgotten: [attached] });
    assert.equal(journal.load().attachments.length, 1, "what is not told is not forgotten");
    await journal.write({ reported: [attached] });
    assert.equal(journal.load().attachments[0]?.noticePending, false);
    await journal.write({ put: [attached] });
    await journal.write({ forgotten: [attached] });
    assert.deepEqual(journal.load().attachments, [attached]);
    await journal.write({ put: [{ ...tombstone, noticePending: false }] });
    await journal.write({ forgotten: [attached] });
    assert.deepEqual(journal.load().attachments, []);
  });

  it("names the attachment that it cannot read", async () => {
    const damages = [
      'UPDATE attachments SET addresses = \'[{"address":"10.0.0.05"}]\'',
      "UPDATE attachments SET addresses = '{'",
      "UPDATE attachments SET routes = 'x'",
      "UPDATE attachments SET start_ns = '-1'",
      "UPDATE attachments SET source = 'nobody'",
    ];
    const journal = open();
    for (const damage of damages) {
      await journal.write({ put: [attachment("a")] });
      await database.write((sql) => sql.run(damage));
      assert.throws(
        () => journal.load(),
        (error: unknown) =>
          error instanceof BerthError &&
          error.code === "STATE_CORRUPT" &&
          error.message.includes("container a, interface eth0"),
        damage,
      );
    }
    await database.write((sql) => {
      sql.run("DELETE FROM attachments");
      sql.run("INSERT INTO positions VALUES ('net', '/d', 0, 'x')");
    });
    assert.throws(() => journal.load(), {
      code: "STATE_CORRUPT",
      message: "a position of net is no address",
    });
  });
});

describe("what was at an attachment's network namespace", () => {
  setUp();

  it("is kept, and not by a version that does not know of it", async () => {
    const known = attachment("a", { netnsSeen: "4:4026532978" });
    const others = [attachment("b"), attachment("c", { netnsSeen: false })];
    await open().write({ put: [known, ...others] });
    database.close();
    const journal = open();
    assert.deepEqual(journal.load().attachments, [known, ...others]);
    const columns = BEFORE_NETNS_ID.join();
    await database.write((sql) =>
      sql.run(`INSERT OR REPLACE INTO attachments (${columns}) SELECT ${columns} FROM attachments`),
    );
    assert.deepEqual(journal.load().attachments, [{ ...known, netnsSeen: true }, ...others]);
  });
});
