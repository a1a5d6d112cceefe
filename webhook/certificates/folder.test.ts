// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { readPair } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { ensureCertificates } from "./folder.ts";
import { issueAuthority, type ServerNames } from "./issue.ts";

const LOCAL: ServerNames = { dnsNames: ["localhost"], addresses: ["127.0.0.1"] };
const DAY_MS = 24 * 60 * 60 * 1000;
const FILES = ["ca.crt", "ca.key", "client.crt", "client.key", "tls.crt", "tls.key"];

describe("ensureCertificates", () => {
  let root = "";
  let folder = "";
  let clock = new ManualClock();
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "berth-certificates-"));
    folder = join(root, "deep", "tls");
    clock = new ManualClock();
  });
  afterEach(() => rm(root, { recursive: true }));

  const ensure = (names = LOCAL) => ensureCertificates(folder, names, clock);
  const text = (name: string) => readFile(join(folder, name), "utf8");
  const modeOf = async (name: string) => (await stat(join(folder, name))).mode & 0o777;

  it("makes the six files, keys for the owner only, and nothing beside them", async () => {
    const { authority, leaf, client } = await ensure();
    assert.deepEqual((await readdir(folder)).toSorted(), FILES);
    assert.deepEqual([await text("ca.crt"), await text("ca.key")], [authority.cert, authority.key]);
    assert.deepEqual([await text("tls.crt"), await text("tls.key")], [leaf.cert, leaf.key]);
    assert.deepEqual([await text("client.crt"), await text("client.key")], [client.cert, client.key]);
    const modes = FILES.map((name) => (name.endsWith(".key") ? 0o600 : 0o644));
    assert.deepEqual(await Promise.all(FILES.map(modeOf)), modes);
    for (const pair of [leaf, client]) assert.ok(readPair(pair).checkIssued(readPair(authority)));
    assert.equal(readPair(client).subject, "O=berth.dev:reviewers\nCN=berth-client");
  });

  it("keeps all of it while it is valid", async () => {
    const first = await ensure();
    clock.advance(59 * DAY_MS);
    assert.deepEqual(await ensure(), first);
    assert.deepEqual((await readdir(folder)).toSorted(), FILES);
  });

  it("renews leaf and client when they are due and keeps the authority", async () => {
    const first = await ensure();
    clock.advance(61 * DAY_MS);
    const second = await ensure();
    assert.deepEqual(second.authority, first.authority);
    assert.notEqual(second.leaf.cert, first.leaf.cert);
    assert.notEqual(second.client.cert, first.client.cert);
    assert.equal(readPair(second.leaf).validToDate.getTime(), clock.now() + 90 * DAY_MS);
    assert.equal(await text("tls.crt"), second.leaf.cert);
  });

  it("makes a leaf again for a name that it lacks, and not for one that it has", async () => {
    const first = await ensure({ dnsNames: ["localhost", "berth.svc"], addresses: ["127.0.0.1", "::1"] });
    assert.deepEqual(await ensure({ dnsNames: ["berth.svc"], addresses: ["::1"] }), first);
    const second = await ensure({ dnsNames: ["localhost"], addresses: ["10.0.0.1"] });
    assert.deepEqual(second.authority, first.authority);
    assert.equal(readPair(second.leaf).checkIP("10.0.0.1"), "10.0.0.1");
  });

  for (const { name, spoil } of [
    { name: "its key is missing", spoil: () => rm(join(folder, "tls.key")) },
    { name: "its certificate is missing", spoil: () => rm(join(folder, "tls.crt")) },
    { name: "its certificate is damaged", spoil: () => writeFile(join(folder, "tls.crt"), "half a certif") },
    {
      name: "its key is another, as after a crash between two writes",
      spoil: async () => writeFile(join(folder, "tls.key"), await text("ca.key")),
    },
    {
      name: "it is that of another authority",
      spoil: async () => {
        await rm(join(folder, "ca.crt"));
      },
    },
    {
      name: "it is valid only in the future, because the clock was wrong",
      spoil: async () => {
        clock = new ManualClock(clock.now() - 30 * DAY_MS);
      },
    },
  ]) {
    it(`makes the leaf again when ${name}`, async () => {
      const first = await ensure();
      await spoil();
      const second = await ensure();
      assert.notEqual(second.leaf.cert, first.leaf.cert);
      assert.ok(readPair(second.leaf).verify(readPair(second.authority).publicKey));
      assert.deepEqual(await ensure(), second);
    });
  }

  it("makes the authority again when its certificate was never written", async () => {
    const first = await ensure();
    await rm(join(folder, "ca.crt"));
    assert.notEqual((await ensure()).authority.cert, first.authority.cert);
  });

  it("makes the authority again before it ends, when a leaf would no longer fit", async () => {
    const first = await ensure();
    clock.advance((3650 - 91) * DAY_MS);
    assert.equal((await ensure()).authority.cert, first.authority.cert);
    clock.advance(2 * DAY_MS);
    const second = await ensure();
    assert.notEqual(second.authority.cert, first.authority.cert);
    assert.ok(readPair(second.leaf).checkIssued(readPair(second.authority)));
  });

  it("makes the authority again when it is valid only in the future, because the clock was wrong", async () => {
    const right = clock.now();
    clock = new ManualClock(right + 400 * DAY_MS);
    const first = await ensure();
    clock = new ManualClock(right);
    const second = await ensure();
    assert.notEqual(second.authority.cert, first.authority.cert);
    for (const pair of [second.authority, second.leaf, second.client])
      assert.ok(readPair(pair).validFromDate.getTime() <= clock.now());
    assert.deepEqual(await ensure(), second);
  });

  it("keeps the authority on a clock that is not set yet", async () => {
    const { authority } = await ensure();
    const set = clock;
    clock = new ManualClock(60_000); // since 1970
    assert.deepEqual((await ensure()).authority, authority);
    clock = set;
    assert.deepEqual((await ensure()).authority, authority);
  });

  it("makes the authority again after a crash between the two writes of the next one", async () => {
    const first = await ensure();
    clock.advance((3650 - 89) * DAY_MS);
    await writeFile(join(folder, "ca.key"), (await issueAuthority(clock)).key);
    const second = await ensure();
    assert.notEqual(second.authority.cert, first.authority.cert);
    assert.ok(readPair(second.leaf).checkIssued(readPair(second.authority)));
    assert.deepEqual(await ensure(), second);
  });

  for (const { name, spoil, why } of [
    {
      name: "without its key",
      spoil: () => rm(join(folder, "ca.key")),
      why: /^\/.*\/ca\.key is missing;/,
    },
    {
      name: "with an empty key",
      spoil: () => writeFile(join(folder, "ca.key"), ""),
      why: /^the private key cannot be read: it is empty;/,
    },
    {
      name: "with another key",
      spoil: async () => writeFile(join(folder, "ca.key"), await text("tls.key")),
      why: /^the private key is not that of the certificate;/,
    },
    {
      name: "that is damaged",
      spoil: () => writeFile(join(folder, "ca.crt"), "half a certif"),
      why: /^the certificate cannot be read: /,
    },
  ]) {
    it(`does not replace an authority ${name}, which others may trust, and says what to do`, async () => {
      await ensure();
      await spoil();
      const before = await Promise.all((await readdir(folder)).map(text));
      const [cert, key] = [join(folder, "ca.crt"), join(folder, "ca.key")];
      await assert.rejects(ensure(), (error: unknown) => {
        assert.ok(error instanceof BerthError && error.code === "CERTIFICATE_INVALID");
        const beginning = `${cert} and ${key} cannot be used: `;
        const end = `; put back what belongs together, or delete ${cert} to make a new authority`;
        assert.ok(error.message.startsWith(beginning) && error.message.endsWith(end), error.message);
        assert.match(error.message.slice(beginning.length), why);
        return true;
      });
      assert.deepEqual(await Promise.all((await readdir(folder)).map(text)), before);
    });
  }

  it("closes keys that others may read", async () => {
    const first = await ensure();
    await chmod(join(folder, "ca.key"), 0o644);
    await chmod(join(folder, "tls.key"), 0o640);
    assert.deepEqual(await ensure(), first);
    assert.deepEqual([await modeOf("ca.key"), await modeOf("tls.key")], [0o600, 0o600]);
  });

  it("says which folder cannot be written", async () => {
    await writeFile(join(root, "deep"), "in the way");
    await assert.rejects(ensure(), (error: unknown) => {
      assert.ok(error instanceof BerthError && error.code === "CONFIG_INVALID");
      assert.ok(error.message.startsWith(`certificates cannot be kept in ${folder}: `));
      return true;
    });
  });
});
