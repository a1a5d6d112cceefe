// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { createRandom } from "../../../system/random.ts";
import { address } from "../testing/node-bench.ts";
import { type Attachment, detached, tombstoneFor } from "./attachment.ts";
import { AttachmentCache } from "./attachment-cache.ts";
import { Journal } from "./journal.ts";
import { BLOCK_STEPS, BLOCKS } from "./owned-blocks.ts";

const SCOPE = { network: "net", dataDir: "/var/lib/cni/networks" };
const BEFORE_NETNS_ID =
  `network data_dir container_id interface state source addresses routes dns netns netns_seen pod_namespace
  pod_name pod_uid claim start_ns attached_at boot_id detached_at deadline_ns notice_pending pool`.split(
    /\s+/,
  );
const AT = { now: 1_700_000_000_000, deadlineNs: 5n, bootId: "boot-1" };

function attachment(containerID: string, changes: Partial<Attachment> = {}): Attachment {
  return {
    ...tombstoneFor({ scope: SCOPE, containerID, interface: "eth0" }, AT),
    state: "attached",
    source: "claim",
    netns: "/run/netns/x",
    netnsSeen: true,
    pod: { namespace: "shop", name: "db-0", uid: "u1" },
    claim: "shop/db-0",
    result: {
      addresses: [
        { address: address("10.0.0.5"), prefixLength: 24, gateway: address("10.0.0.1") },
        { address: address("fd00::5"), prefixLength: 64 },
      ],
      routes: [{ dst: "0.0.0.0/0", table: 0 }],
      dns: { nameservers: ["10.0.0.2"] },
    },
    startNs: 2n ** 63n, // beyond what a number holds
    attachedAt: AT.now,
    detachedAt: 0,
    ...changes,
  };
}

let folder = "";
let database: Database;
let fault: Error | undefined;

function open(): Journal {
  const beforeCommit = () => {
    if (fault !== undefined) throw fault;
  };
  database = openDatabase(join(folder, "agent.db"), { beforeCommit });
  return new Journal(database);
}

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-journal-"));
    fault = undefined;
  });
  afterEach(async () => {
    database.close();
    await rm(folder, { recursive: true });
  });
}

describe("journal", () => {
  setUp();

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
    fault = new BerthError("STORE_FULL", "full");
    await assert.rejects(journal.write({ put: [attachment("a")] }), fault);
    assert.deepEqual([journal.failing, journal.load().attachments], [true, []]);
    fault = undefined;
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

describe("addresses of blocks in the journal", () => {
  setUp();
  const BLOCK = {
    cidr: "10.0.0.0/30",
    uid: "u1",
    pool: "db",
    holes: ["10.0.0.0/32"],
    bootId: "b",
    nodeUID: "node-1",
    returningAt: 0,
  };
  const DB = { name: "db", spec: { ranges: [{ cidr: "10.0.0.0/24" }] } };

  it("are one of the network's ranges to a version that knows of no blocks", async () => {
    const one = attachment("a", { source: "block", pool: "db" });
    await new AttachmentCache(open()).commit({ put: [one] });
    assert.deepEqual(
      database.read((sql) => sql.all("SELECT source FROM attachments")).map(({ source }) => source),
      ["ranges"],
    );
    database.close();
    assert.deepEqual(new AttachmentCache(open()).get(one), one);
  });

  it("come with the blocks and with the pools that there are, until their records are gone", async () => {
    const journal = open();
    const returning = { ...BLOCK, uid: "u0", returningAt: 5 };
    await journal.write({ blocks: { put: [BLOCK, returning], pools: [DB] } });
    assert.deepEqual(journal.load().blocks, [returning, BLOCK]);
    await journal.write({ blocks: { gone: [returning] } });
    assert.deepEqual([journal.load().blocks, journal.load().pools], [[BLOCK], [DB]]);
    await journal.write({ blocks: { gone: [BLOCK] } });
    assert.deepEqual([journal.load().blocks, journal.load().pools], [[], [DB]]);
    await journal.write({ blocks: { poolsGone: [DB.name] } });
    assert.deepEqual(journal.load().pools, []);
  });

  it("that cannot be read are not passed over", async () => {
    const journal = open();
    await journal.write({ blocks: { put: [{ ...BLOCK, holes: ["x"] }] } });
    const words = "the journal's block 10.0.0.0/30 cannot be read; restore it from a backup";
    assert.throws(() => journal.load(), { code: "STATE_CORRUPT", message: words });
  });
});

describe("attachments", () => {
  setUp();

  it("are published after they are written, and not when that fails", async () => {
    const attachments = new AttachmentCache(open());
    const one = attachment("a");
    const writing = attachments.commit({ put: [one] });
    assert.equal(attachments.get(one), undefined);
    await writing;
    assert.equal(attachments.get(one), one);
    fault = new BerthError("STORE_FULL", "full");
    await assert.rejects(attachments.commit({ put: [detached(one, AT)] }), fault);
    assert.equal(attachments.get(one), one);
    assert.deepEqual([...attachments.held()].sort(), ["10.0.0.5", "fd00::5"]);
  });

  it("are found by place, by claim and by what has yet to be told, also after a restart", async () => {
    const [a, b] = [attachment("a"), detached(attachment("b", { claim: "shop/db-1" }), AT)];
    await new AttachmentCache(open()).commit({ put: [a, b] });
    database.close();
    const attachments = new AttachmentCache(open());
    assert.deepEqual(attachments.get(a), a);
    assert.deepEqual(attachments.ofClaim("shop/db-0"), [a]);
    assert.deepEqual(attachments.ofClaim("shop/db-1"), []);
    assert.deepEqual(attachments.unreported(), [b]);
    assert.deepEqual(attachments.attached(), [a]);
    await attachments.commit({ reported: [b] });
    assert.deepEqual(attachments.unreported(), []);
    await attachments.commit({ put: [detached(a, AT)] });
    assert.deepEqual([attachments.ofClaim("shop/db-0"), attachments.held()], [[], []]);
    await attachments.commit({ forgotten: [a, b] });
    assert.deepEqual([attachments.get(a)?.state, attachments.get(b)], ["detached", undefined]);
  });

  it("are found by their pod, in every sandbox that it had, until they are forgotten", async () => {
    const [a, b] = [detached(attachment("a"), AT), attachment("b")];
    const other = attachment("c", { pod: { namespace: "shop", name: "db-0", uid: "u2" } });
    await new AttachmentCache(open()).commit({ put: [a, b, other] });
    database.close();
    const attachments = new AttachmentCache(open());
    assert.deepEqual(attachments.ofPod("u1"), [a, b]);
    assert.deepEqual(attachments.ofPod("u2"), [other]);
    await attachments.commit({
      put: [detached(b, AT), { ...other, ...(b.pod === undefined ? {} : { pod: b.pod }) }],
    });
    assert.deepEqual(
      attachments.ofPod("u1").map(({ containerID, state }) => [containerID, state]),
      [
        ["a", "detached"],
        ["b", "detached"],
        ["c", "attached"],
      ],
    );
    assert.deepEqual(attachments.ofPod("u2"), []);
    await attachments.commit({ reported: [a, b], forgotten: [a, b] });
    assert.deepEqual(
      attachments.ofPod("u1").map(({ containerID }) => containerID),
      ["c"],
    );
  });

  it("let those go on who wait for a detachment", async () => {
    const attachments = new AttachmentCache(open());
    const one = attachment("a");
    const { signal } = new AbortController();
    await attachments.untilDetached(one, signal);
    await attachments.commit({ put: [one] });
    const waiting = [attachments.untilDetached(one, signal), attachments.untilDetached(one, signal)];
    await attachments.commit({ put: [detached(one, AT)] });
    await Promise.all(waiting);
    await attachments.commit({ put: [one] });
    const gone = new AbortController();
    const given = attachments.untilDetached(one, gone.signal);
    gone.abort();
    await given;
    await attachments.untilDetached(one, gone.signal);
    assert.equal(attachments.get(one), one);
  });
});
