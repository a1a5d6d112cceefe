// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { addrs } from "../../../test/support/fixtures.ts";
import type { AttachmentKey } from "../claims/claim-source.ts";
import type { Presence } from "./host.ts";
import { isStillThere, readRecord, recordOf, recordsIn } from "./runtime-records.ts";

const BOOTED_AT = 1_700_000_000;
const BERTH = { type: "bridge", ipam: { type: "berth" } };

/** As libcni writes it. */
function cached(containerId: string, sandbox: string, config: object = { name: "net", plugins: [BERTH] }) {
  return {
    kind: "cniCacheV1",
    ...{ containerId, ifName: "eth0", networkName: "net" },
    config: Buffer.from(JSON.stringify(config)).toString("base64"),
    cniArgs: [["K8S_POD_NAME", "web-0"]],
    result: {
      cniVersion: "1.0.0",
      interfaces: [{ name: "cni0" }, { name: "eth0", sandbox }],
      ips: [
        { address: "10.1.2.3/24", interface: 1 },
        { address: "fd00::3/64", interface: 1 },
      ],
    },
  };
}

describe("a runtime's record", () => {
  const rows: readonly [string, unknown, boolean][] = [
    ["of a list with Berth", cached("a", "/run/netns/a"), true],
    ["of one plugin with Berth", cached("a", "/run/netns/a", BERTH), true],
    ["of another IPAM plugin", cached("a", "/run/netns/a", { ipam: { type: "host-local" } }), false],
    ["of a network without IPAM", cached("a", "/run/netns/a", { plugins: [{ type: "loopback" }] }), false],
    ["without a configuration", { ...cached("a", "/run/netns/a"), config: 7 }, false],
    ["without a container", { ...cached("a", "/run/netns/a"), containerId: undefined }, false],
    ["of an older libcni, a bare result", cached("a", "/run/netns/a").result, false],
    ["which is a list", [], false],
  ];
  for (const [what, record, counts] of rows)
    it(`${counts ? "counts" : "does not count"}: ${what}`, () =>
      assert.equal(readRecord("/p", JSON.stringify(record)) !== undefined, counts));

  it("does not count when it is cut off", () => {
    const text = JSON.stringify(cached("a", "/run/netns/a"));
    for (let end = 0; end < text.length; end += 7)
      assert.equal(readRecord("/p", text.slice(0, end)), undefined);
  });

  it("gives what is known of the attachment, with the path that newer libcni notes by itself", () => {
    const record = {
      ...{ path: "/p", network: "net", containerID: "a", interface: "eth0", netns: "/run/netns/a" },
      addresses: ["10.1.2.3", "fd00::3"],
    };
    assert.deepEqual(readRecord("/p", JSON.stringify(cached("a", "/run/netns/a"))), record);
    const own = { ...cached("a", "/run/netns/a"), netns: "/run/netns/b", result: {} };
    assert.deepEqual(readRecord("/p", JSON.stringify(own)), {
      ...record,
      netns: "/run/netns/b",
      addresses: [],
    });
  });
});

describe("the addresses of a record", () => {
  const rows: readonly [string, object, readonly string[]][] = [
    ["are spelled as Berth spells them", { ips: [{ address: "FD00:20:0:0::70/64" }] }, ["fd00:20::70"]],
    [
      "are those of a result of 0.2.0, too",
      { ip4: { ip: "10.1.2.3/24" }, ip6: { ip: "fd00::3/64" } },
      ["10.1.2.3", "fd00::3"],
    ],
    ["are none where no plugin has said any", {}, []],
    ["are not what is no address", { ips: [{ address: "10.1.2/24" }, { address: 7 }, "10.1.2.3"] }, []],
  ];
  for (const [what, result, addresses] of rows)
    it(what, () => {
      const record = readRecord("/p", JSON.stringify({ ...cached("a", "/run/netns/a"), result }));
      assert.deepEqual(record?.addresses, addresses);
    });
});

describe("of the runtime's records", () => {
  let folder: string;
  let seen: Record<string, Presence>;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-records-"));
    await mkdir(join(folder, "results"));
    seen = {};
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function write(name: string, netns: string, inThisBoot = true): Promise<void> {
    const path = join(folder, "results", name);
    await writeFile(path, JSON.stringify(cached(name, netns)));
    const at = BOOTED_AT + (inThisBoot ? 60 : -60);
    await utimes(path, at, at);
  }

  async function found(): Promise<string> {
    const host = {
      look: async (path: string) => seen[path] ?? "gone",
      read: async () => `cpu  1 2 3\nbtime ${BOOTED_AT}\nprocesses 9\n`,
    };
    const records = await recordsIn([join(folder, "none"), join(folder, "results")], host)();
    return records.map(({ containerID }) => containerID).join(" ");
  }

  it("those count whose namespace is there, or cannot be looked at and may be of this boot", async () => {
    seen = {
      "/run/netns/up": "present",
      "/run/netns/old": "present",
      "/x/y": "unknown",
      "/proc/7/ns/net": "present",
    };
    await write("up", "/run/netns/up");
    await write("up-by-a-wrong-clock", "/run/netns/old", false);
    await write("down", "/run/netns/down");
    await write("hidden", "/x/y");
    await write("hidden-before", "/x/y", false);
    await write("process", "/proc/7/ns/net");
    await write("process-unseen", "/proc/8/ns/net");
    await write("process-before", "/proc/7/ns/net", false);
    await write("pathless", "");
    await write("pathless-before", "", false);
    await writeFile(join(folder, "results", "broken"), "{");
    await mkdir(join(folder, "results", "folder"));
    assert.equal(await found(), "hidden pathless process process-unseen up up-by-a-wrong-clock");
  });

  it("that of an attachment is found by its name, and says what it is of", async () => {
    const find = recordOf([join(folder, "none"), join(folder, "results")]);
    const state = (of: AttachmentKey, ...addresses: readonly string[]) => find(of, addrs(...addresses));
    const wanted = { network: "net", containerID: "a", interface: "eth0" };
    assert.equal(await recordOf([join(folder, "none")])(wanted, []), "unkept");
    assert.equal(await state(wanted), "missing");
    const path = join(folder, "results", "net-a-eth0");
    await writeFile(path, JSON.stringify(cached("another", "/run/netns/a")));
    assert.equal(await state(wanted), "missing");
    await writeFile(path, JSON.stringify(cached("a", "/run/netns/a")));
    assert.equal(await state(wanted), "kept");
    assert.equal(await state(wanted, "10.1.2.3", "fd00::3"), "kept");
    assert.equal(await state(wanted, "10.1.2.4"), "unkept", "nobody would find it by this address");
    await writeFile(path, JSON.stringify(cached("a", "/proc/7/ns/net")));
    assert.equal(await state(wanted), "unkept", "another process may have that path");
    await writeFile(path, JSON.stringify(cached("a", "/run/netns/a")));
    assert.equal(await state({ ...wanted, interface: "net1" }), "missing");
    assert.equal(await state({ ...wanted, network: `${folder}/results/net` }), "kept", "within the folder");
  });

  it("one is there until the runtime has removed it, or has another at its place", async () => {
    const path = join(folder, "results", "net-a-eth0");
    await writeFile(path, JSON.stringify(cached("a", "/run/netns/a")));
    const record = readRecord(path, JSON.stringify(cached("a", "/run/netns/a"))) ?? assert.fail();
    assert.equal(await isStillThere(record), true);
    await writeFile(path, JSON.stringify(cached("b", "/run/netns/b")));
    assert.equal(await isStillThere(record), false);
    await rm(path);
    assert.equal(await isStillThere(record), false);
  });

  it("nothing is known where a folder cannot be read", async () => {
    const looped = join(folder, "loop");
    await symlink(looped, looped);
    const host = { look: async () => "present" as const, read: async () => "" };
    await assert.rejects(recordsIn([looped], host)(), /ELOOP/);
  });
});
