// SPDX-License-Identifier: Apache-2.0
// An audit without a network: the lock's versions beside records as the OSV database has them.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { crc32, deflateRawSync } from "node:zlib";
import { run } from "../test/support/process.ts";

const ROOT = join(import.meta.dirname, "..");
let folder: string;

/** A zip archive, each second file of which is packed; with a directory for more files than the older form can count. */
function zipOf(files: readonly string[], isLarge = false): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [n, text] of files.entries()) {
    const name = Buffer.from(`${n}.json`);
    const bytes = n % 2 === 0 ? Buffer.from(text) : deflateRawSync(text);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(n % 2 === 0 ? 0 : 8, 4);
    common.writeUInt32LE(crc32(text), 10);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(Buffer.byteLength(text), 18);
    common.writeUInt16LE(name.length, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00"), common, place, name);
    parts.push(Buffer.from("PK\x03\x04"), common, name, bytes);
    at += 4 + common.length + name.length + bytes.length;
  }
  const size = Buffer.concat(directory).length;
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06");
  end.writeUInt16LE(isLarge ? 0xffff : files.length, 10);
  end.writeUInt32LE(isLarge ? 0xffffffff : at, 16);
  return Buffer.concat([...parts, ...directory, ...(isLarge ? largeEnd(files.length, at, size) : []), end]);
}

function largeEnd(count: number, at: number, size: number): readonly Buffer[] {
  const end = Buffer.alloc(56);
  end.write("PK\x06\x06");
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(at), 48);
  const locator = Buffer.alloc(20);
  locator.write("PK\x06\x07");
  locator.writeBigUInt64LE(BigInt(at + size), 8);
  return [end, locator];
}

interface Event {
  readonly introduced?: string;
  readonly fixed?: string;
  readonly last_affected?: string;
}

function record(id: string, name: string, events: readonly Event[], more: object = {}): string {
  const ranges = [{ type: "SEMVER", events }];
  return JSON.stringify({
    id,
    summary: "made up",
    affected: [{ package: { ecosystem: "npm", name }, ranges }],
    ...more,
  });
}

const LOCK = JSON.stringify({
  packages: {
    "": { name: "berth", version: "0.1.0" },
    "node_modules/express": { version: "5.3.0" },
    "node_modules/a/node_modules/@b/c": { version: "1.0.0-rc.2" },
    "node_modules/renamed": { name: "real", version: "2.0.0" },
  },
});

async function audit(zip: Buffer | string) {
  const [lock, database] = [join(folder, "package-lock.json"), join(folder, "all.zip")];
  writeFileSync(lock, LOCK);
  writeFileSync(database, zip);
  const { rc, stdout, stderr } = await run(process.execPath, [
    join(ROOT, "scripts/advisories.mjs"),
    lock,
    database,
  ]);
  const said = stdout.trim().split("\n");
  return { rc, said: rc === 1 ? said.map((line) => line.split(" made up")[0]) : said, stderr };
}

describe("an audit of the lock without a network", () => {
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-advisories-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const { name, zip } of [
    { name: "an archive", zip: zipOf },
    { name: "one of more than 65,535 files", zip: (files: readonly string[]) => zipOf(files, true) },
  ]) {
    it(`finds in ${name} what is affected, and nothing else`, async () => {
      const records = [
        record("HIT-1", "express", [{ introduced: "5.0.0" }, { fixed: "5.3.1" }]),
        record("MISS-fixed", "express", [{ introduced: "0" }, { fixed: "5.3.0" }]),
        record("MISS-later", "express", [{ introduced: "5.10.0" }]),
        record("HIT-2", "express", [
          { introduced: "0" },
          { fixed: "4.0.0" },
          { introduced: "5.2.9" },
          { last_affected: "5.3.0" },
        ]),
        record("MISS-last", "express", [{ introduced: "0" }, { last_affected: "5.2.10" }]),
        record("HIT-3", "@b/c", [{ introduced: "1.0.0-beta" }, { fixed: "1.0.0" }]),
        record("MISS-before", "@b/c", [{ introduced: "1.0.0-rc.10" }]),
        record("HIT-4", "real", [], {
          affected: [{ package: { ecosystem: "npm", name: "real" }, versions: ["2.0.0"] }],
        }),
        record("MISS-renamed", "renamed", [{ introduced: "0" }]),
        record("MISS-withdrawn", "express", [{ introduced: "0" }], { withdrawn: "2026-01-01T00:00:00Z" }),
        record("MISS-other", "express", [], {
          affected: [{ package: { ecosystem: "PyPI", name: "express" }, versions: ["5.3.0"] }],
        }),
      ];
      const { rc, said, stderr } = await audit(zip(records));
      assert.deepEqual(
        [rc, said, stderr],
        [
          1,
          ["@b/c 1.0.0-rc.2: HIT-3", "express 5.3.0: HIT-1", "express 5.3.0: HIT-2", "real 2.0.0: HIT-4"],
          "",
        ],
      );
    });
  }

  it("passes, and says what it has compared, when nothing is", async () => {
    const { rc, said } = await audit(zipOf([record("MISS", "express", [{ introduced: "6.0.0" }])]));
    assert.equal(rc, 0);
    assert.match(said.join("\n"), /^none of 3 versions of \S+ is affected by one of 1 records$/);
  });

  it("does not pass when nothing could be compared", async () => {
    for (const [zip, why] of [
      [zipOf([]), "it has no record"],
      ["nonsense", "it is no zip archive"],
    ] as const) {
      const { rc, stderr } = await audit(zip);
      assert.equal(rc, 2);
      assert.equal(stderr, `nothing was audited: ${join(folder, "all.zip")}: ${why}\n`);
    }
  });

  it("is what `make audit` does with a folder that has the database, for the lock that is here", async () => {
    const given = join(folder, "osv");
    mkdirSync(join(given, "npm"), { recursive: true });
    const script = async () =>
      await run("bash", [join(ROOT, "scripts/audit.sh")], {
        env: { PATH: process.env["PATH"] ?? "", OSV_DB: given },
      });
    const without = await script();
    assert.deepEqual(
      [without.rc, without.stderr.trim()],
      [2, `nothing was audited: ${given}/npm/all.zip is not there`],
    );
    const all = [{ introduced: "0" }];
    writeFileSync(join(given, "npm/all.zip"), zipOf([record("MISS", "no-such-package-of-berth", all)]));
    const clean = await script();
    assert.equal(clean.rc, 0, clean.stderr);
    writeFileSync(join(given, "npm/all.zip"), zipOf([record("HIT", "express", all)]));
    const hit = await script();
    assert.equal(hit.rc, 1);
    assert.match(hit.stdout, /^express \d+\.\d+\.\d+: HIT made up$/m);
  });

  it("needs nothing of a fresh clone but the lock and node, and installs nothing", async () => {
    const [clone, given] = [join(folder, "clone"), join(folder, "osv-alone")];
    mkdirSync(join(given, "npm"), { recursive: true });
    mkdirSync(join(clone, "scripts"), { recursive: true });
    for (const file of ["Makefile", "package-lock.json", "scripts/audit.sh", "scripts/advisories.mjs"])
      copyFileSync(join(ROOT, file), join(clone, file));
    const none = [record("MISS", "no-such-package-of-berth", [{ introduced: "0" }])];
    writeFileSync(join(given, "npm/all.zip"), zipOf(none));
    const { rc, stdout, stderr } = await run("make", ["-C", clone, "audit", `OSV_DB=${given}`], {
      env: { PATH: process.env["PATH"] ?? "" },
    });
    assert.equal(rc, 0, stderr);
    assert.match(stdout, /^none of \d+ versions of package-lock\.json is affected/m);
    assert.deepEqual(readdirSync(clone).sort(), ["Makefile", "package-lock.json", "scripts"]);
  });
});
