// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { parseAddress } from "../../../allocator/ip/address.ts";
import { nameOf } from "./attachment.ts";
import type { Presence } from "./host.ts";
import { type Evidence, isLive, leasesOn, readLease } from "./host-local-leases.ts";

const MINUTE = 60_000;
const BOOTED_AT = 1_700_000_000_000;
const NOW = BOOTED_AT + 600 * MINUTE;

describe("host-local's lease", () => {
  const address = parseAddress("10.1.2.3") ?? assert.fail();
  const rows: readonly [string, number, Evidence, boolean, boolean][] = [
    ["whose namespace is there", 300, "present", true, true],
    ["whose namespace is there, by a wrong clock", -60, "present", true, true],
    ["whose namespace is gone", 599, "gone", true, false],
    ["whose namespace cannot be looked at", 300, "unknown", true, true],
    ["whose record names no namespace", 300, "unsaid", true, true],
    ["of an older boot", -60, "unknown", true, false],
    ["of an older boot, without a record", -60, "no record", false, false],
    ["whose record was taken away by its DEL", 300, "no record", true, false],
    ["so young that its ADD may be under way", 595, "no record", true, true],
    ["where the runtime keeps no records", 300, "no record", false, true],
  ];
  for (const [what, minutes, evidence, keepsRecords, live] of rows)
    it(`${live ? "holds" : "does not hold"}: ${what}`, () => {
      const lease = { address, containerID: "c", interface: "eth0", writtenAt: BOOTED_AT + minutes * MINUTE };
      assert.equal(isLive(lease, evidence, { bootedAt: BOOTED_AT, now: NOW, keepsRecords }), live);
    });

  it("is a file with the name of an address and the container inside", () => {
    const lease = { address, containerID: "c1", interface: "eth0", writtenAt: 7 };
    assert.deepEqual(readLease("10.1.2.3", "c1\r\neth0", 7), lease);
    assert.deepEqual(readLease("10.1.2.3", "c1\n", 7), { ...lease, interface: "" });
    for (const name of ["lock", "last_reserved_ip.0", "10.1.2"])
      assert.equal(readLease(name, "c1", 7), undefined);
    assert.equal(readLease("10.1.2.3", "", 7), undefined);
  });
});

describe("of host-local's folder", () => {
  let folder: string;
  let seen: Record<string, Presence>;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-leases-"));
    for (const name of ["results", "networks/net"]) await mkdir(join(folder, name), { recursive: true });
    seen = {};
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function write(path: string, text: string, minutes = 300): Promise<void> {
    await writeFile(join(folder, path), text);
    const at = (BOOTED_AT + minutes * MINUTE) / 1000;
    await utimes(join(folder, path), at, at);
  }

  async function held(network = "net"): Promise<Record<string, string>> {
    const host = {
      look: async (path: string) => seen[path] ?? "gone",
      read: async () => `btime ${BOOTED_AT / 1000}\n`,
    };
    const leases = leasesOn(host, [join(folder, "none"), join(folder, "results")], () => NOW);
    const found = await leases.live({ network, dataDir: join(folder, "networks") });
    return Object.fromEntries([...found].map(([one, id]) => [one, nameOf(id)]));
  }

  it("those hold whose container may be up", async () => {
    seen = { "/run/netns/up": "present" };
    await write("networks/net/lock", "");
    await write("networks/net/last_reserved_ip.0", "10.1.2.5");
    for (const [i, name] of ["up", "down", "deleted"].entries())
      await write(`networks/net/10.1.2.${i + 2}`, `${name}\r\neth0`);
    await write("networks/net/fd00::2", "up\r\neth0");
    await write("networks/net/10.1.2.9", "rebooted\r\neth0", -60);
    for (const name of ["up", "down"])
      await write(`results/net-${name}-eth0`, JSON.stringify({ netns: `/run/netns/${name}` }));
    assert.deepEqual(await held(), { "10.1.2.2": "container up (eth0)", "fd00::2": "container up (eth0)" });
    assert.deepEqual(await held("other"), {});
  });

  it("all are written, whatever became of their containers, and nothing is read for it", async () => {
    await write("networks/net/lock", "");
    await write("networks/net/10.1.2.2", "a\r\neth0", -60);
    await write("networks/net/fd00:0::2", "");
    const host = { look: () => assert.fail(), read: () => assert.fail() };
    const leases = leasesOn(host, [], () => NOW);
    const scope = { network: "net", dataDir: join(folder, "networks") };
    assert.deepEqual([...(await leases.written(scope)).keys()].sort(), ["10.1.2.2", "fd00::2"]);
    assert.equal((await leases.written({ ...scope, network: "other" })).size, 0);
  });

  it("all of this boot hold where the runtime keeps no records of the network", async () => {
    await write("networks/net/10.1.2.2", "a\r\neth0");
    await write("networks/net/10.1.2.3", "b\r\neth0", -60);
    await write("results/other-c-eth0", "{}");
    assert.deepEqual(await held(), { "10.1.2.2": "container a (eth0)" });
  });

  it("what cannot be read holds: the lease, or what the runtime keeps of its container", async () => {
    await symlink("10.1.2.2", join(folder, "networks/net/10.1.2.2"));
    await write("networks/net/10.1.2.3", "deleted\r\neth0");
    await write("networks/net/10.1.2.4", "unread\r\neth0");
    await write("networks/net/10.1.2.5", "unread\r\neth1", -60);
    for (const name of ["eth0", "eth1"])
      await symlink(`net-unread-${name}`, join(folder, "results", `net-unread-${name}`));
    assert.deepEqual(await held(), {
      "10.1.2.2": "container unknown (unknown)",
      "10.1.2.4": "container unread (eth0)",
    });
  });

  it("nothing is said of one that cannot be read", async () => {
    await symlink("circle", join(folder, "networks/circle"));
    await assert.rejects(held("circle"), { code: "STORE_UNAVAILABLE" });
    await writeFile(join(folder, "networks/file"), "");
    assert.deepEqual(await held("file"), {});
  });
});
