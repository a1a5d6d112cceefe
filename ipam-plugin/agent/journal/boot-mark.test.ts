// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { addrs } from "../../../test/support/fixtures.ts";
import { middling } from "../testing/node-bench.ts";
import { adopt } from "./adopt.ts";
import { adoptionText, bindToBoot, judgeMark, markFileOf, markText, refusalByMark } from "./boot-mark.ts";
import { Journal } from "./journal.ts";
import type { RuntimeRecord } from "./runtime-records.ts";

const OURS = { bootId: "boot-1", journal: "ours", position: 7 };
/** A sandbox that is up, as the runtime knows it. */
const UP: RuntimeRecord = {
  ...{ path: "/var/lib/cni/results/net-up-eth0", network: "net", containerID: "up", interface: "eth0" },
  ...{ addresses: addrs("10.1.2.3"), netns: "/run/netns/up" },
};

function asking(mark: typeof OURS, place: string, ...unknownSandboxes: readonly RuntimeRecord[]) {
  return { ...mark, place, unknownSandboxes: async () => unknownSandboxes, rename: async () => undefined };
}

describe("the mark of a boot", () => {
  const rows: readonly [string, string | undefined, string][] = [
    ["nothing has served yet", undefined, "none"],
    ["this journal has", markText(OURS), "ours"],
    ["it had come less far, when it died before it said so", markText({ ...OURS, position: 6 }), "ours"],
    ["it has had more writes since", markText({ ...OURS, position: 8 }), "older"],
    ["an earlier version says no position", '{"bootId":"boot-1","journal":"ours"}', "ours"],
    ["a person has let it serve", adoptionText(OURS, "new"), "adopted"],
    [
      "a person has let it serve, and it has its new id",
      adoptionText({ ...OURS, journal: "old" }, "ours"),
      "ours",
    ],
    ["a person has let a newer copy serve", adoptionText({ ...OURS, position: 9 }, "new"), "older"],
    ["its position is no number", markText(OURS).replace("0000000000000007", "x"), "another"],
    ["another has", markText({ ...OURS, journal: "other" }), "another"],
    [
      "another had, in a boot that is over",
      markText({ bootId: "boot-0", journal: "other", position: 9 }),
      "none",
    ],
    ["it is cut off", markText(OURS).slice(0, 20), "another"],
    ["it says nothing", "", "another"],
    ["it is something else", "[1]", "another"],
  ];
  for (const [what, text, verdict] of rows) {
    it(`${verdict}: ${what}`, () => assert.equal(judgeMark(text, OURS).kind, verdict));
  }
});

describe("a node", () => {
  let folder: string;
  let socketPath: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-mark-"));
    socketPath = join(folder, "agent.sock");
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is bound to the first journal that serves, until the next boot", async () => {
    const file = markFileOf(socketPath);
    await bindToBoot(file, asking(OURS, "/a.db"));
    await bindToBoot(file, asking(OURS, "/a.db"));
    const other = { ...OURS, journal: "other" };
    await assert.rejects(bindToBoot(file, asking(other, "/b.db")), {
      code: "JOURNAL_MISMATCH",
      message:
        /^the journal \/b.db is not the one that has served this node since it booted: .*berthctl adopt/,
    });
    assert.equal(await file.read(), markText(OURS), "a refused one leaves the mark alone");
    await bindToBoot(file, asking({ ...other, bootId: "boot-2" }, "/b.db"));
    await assert.rejects(bindToBoot(file, asking({ ...OURS, bootId: "boot-2" }, "/a.db")), {
      code: "JOURNAL_MISMATCH",
    });
  });

  it("is not bound while the runtime knows of a sandbox that the journal does not, and no mark is left", async () => {
    const file = markFileOf(socketPath);
    const unknown = asking(OURS, "/a.db", UP, { ...UP, containerID: "up2" });
    await assert.rejects(bindToBoot(file, unknown), {
      code: "JOURNAL_MISMATCH",
      message:
        /sandboxes that are up \(container up, eth0, with 10.1.2.3 in network net, by \/var\/lib\/cni\/results\/net-up-eth0 and 1 more\), and would give/,
    });
    assert.equal(await file.read(), undefined);
    await file.write(markText(OURS));
    await bindToBoot(file, unknown);
    await assert.rejects(bindToBoot(file, { ...unknown, bootId: "boot-2" }), { code: "JOURNAL_MISMATCH" });
  });

  it("is told how far its journal has come, and refuses a copy that has come less far", async () => {
    const file = markFileOf(socketPath);
    const reached = await bindToBoot(file, asking(OURS, "/a.db"));
    reached(8);
    reached(12_345);
    assert.equal(await file.read(), markText({ ...OURS, position: 12_345 }));
    file.close();
    await assert.rejects(bindToBoot(file, asking({ ...OURS, position: 12_344 }, "/a.db")), {
      code: "JOURNAL_MISMATCH",
      message: /^the journal \/a.db is an older copy of the one that has served this node since it booted: /,
    });
    await bindToBoot(file, asking({ ...OURS, position: 12_345 }, "/a.db"));
  });

  it("forbids nothing to a journal that is written while the mark is read", async () => {
    const file = markFileOf(socketPath);
    const reached = await bindToBoot(file, asking(OURS, "/a.db"));
    let { position } = OURS;
    // as the agent does: the journal first, then the mark
    const busy = {
      ...file,
      read: () => {
        position = 12;
        reached(position);
        return file.read();
      },
    };
    const asked = { place: "/a.db", bootId: OURS.bootId };
    const read = () => ({ journal: OURS.journal, position });
    assert.equal(await refusalByMark(busy, { ...asked, read }), undefined);
    position = 11;
    assert.match((await refusalByMark(file, { ...asked, read })) ?? "", /older copy/);
    file.close();
  });

  it("does not serve when the mark cannot be written or read", async () => {
    await assert.rejects(bindToBoot(markFileOf(join(folder, "none/agent.sock")), asking(OURS, "/a.db")), {
      code: "CONFIG_INVALID",
      message: /none\/agent.sock.journal, which says what journal serves this node, cannot be used/,
    });
    await mkdir(`${socketPath}.journal`);
    await assert.rejects(bindToBoot(markFileOf(socketPath), asking(OURS, "/a.db")), {
      code: "CONFIG_INVALID",
    });
  });

  it("is adopted by a journal when a person has said so, who is told of what is up", async () => {
    const database = join(folder, "agent.db");
    const netns = join(folder, "netns");
    await mkdir(netns);
    await writeFile(join(netns, "cni-1"), "");
    const runtimeRecords = async () => [];
    const call = {
      database,
      socketPath,
      bootId: "boot-1",
      confirmed: false,
      netnsFolders: [netns],
      runtimeRecords,
    };
    await assert.rejects(adopt(call), { message: `${database} has no journal yet; start Berth on it once` });
    const opened = openDatabase(database);
    const journal = await new Journal(opened).id(middling);
    assert.equal(await new Journal(opened).id(middling), journal, "the id stays");
    opened.close();
    assert.match((await adopt(call)).join("\n"), /^no other journal has served/);
    const withRecord = (await adopt({ ...call, runtimeRecords: async () => [UP] })).join("\n");
    assert.ok(
      withRecord.includes("only the runtime knows: 1\n  container up, eth0, with 10.1.2.3"),
      withRecord,
    );
    assert.match(withRecord, /Nothing was changed. To adopt it: the same with --yes$/);
    const file = markFileOf(socketPath);
    await bindToBoot(file, asking({ bootId: "boot-1", journal: "other", position: 0 }, "/other.db"));
    const asked = (await adopt(call)).join("\n");
    assert.ok(asked.includes(`network namespaces on this host: 1\n  ${netns}/cni-1\n`), asked);
    assert.match(asked, /Nothing was changed. To adopt it: the same with --yes$/);
    assert.match(await readFile(file.path, "utf8"), /other/);
    assert.match((await adopt({ ...call, confirmed: true })).join("\n"), /is adopted/);
    assert.match((await adopt(call)).join("\n"), /nothing to adopt$/);
    const serving = openDatabase(database);
    const rename = (id: string) => new Journal(serving).rename(id);
    const own = { bootId: "boot-1", journal, position: 0 };
    await bindToBoot(file, { ...asking(own, database), rename });
    assert.notEqual(new Journal(serving).knownId(), journal, "a copy of it is another one now");
    serving.close();
    await assert.rejects(bindToBoot(file, asking(own, database)), { code: "JOURNAL_MISMATCH" });
    assert.match((await adopt(call)).join("\n"), /nothing to adopt$/);
  });
});
