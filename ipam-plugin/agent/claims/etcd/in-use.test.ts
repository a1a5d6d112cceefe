// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { BerthError } from "../../../../allocator/base/errors.ts";
import {
  addr,
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  storedAs,
} from "../../../../test/support/fixtures.ts";
import { attachment } from "../../testing/opened-journal.ts";
import { type InUse, inUseOf, isKept, isKeptIn } from "./in-use.ts";

const USE: InUse = {
  ...{ claim: "shop/mysql-0", containerID: "box", interface: "eth0", network: "lan" },
  addresses: addrs("10.20.0.70"),
};
const OWN = claimRecord({
  binding: bindingTo("mysql-0", "host-a"),
  status: { attachment: attachmentOf("mysql-0") },
});

describe("isKept", () => {
  for (const [what, claim, expected] of [
    ["as the host left it", OWN, true],
    ["no claim", undefined, false],
    ["bound to another host", { ...OWN, binding: bindingTo("mysql-0", "host-b") }, false],
    ["bound to nobody", claimRecord(), false],
    ["given another address", { ...OWN, addresses: addrs("10.20.0.71") }, false],
    ["more than this interface has", { ...OWN, addresses: [...OWN.addresses, addr("10.30.0.1")] }, true],
    ["let go", { ...OWN, status: { attachment: attachmentOf("mysql-0", { detached: true }) } }, false],
    [
      "with another container of the host",
      { ...OWN, status: { attachment: attachmentOf("mysql-0", { containerID: "other" }) } },
      true,
    ],
  ] as const) {
    it(`is ${expected} for ${what}`, () => {
      assert.equal(isKept(claim, USE, "host-a"), expected);
    });
  }

  it("is true for a claim that cannot be read, and not known while etcd is away", async () => {
    const failing = (code: "STATE_CORRUPT" | "STORE_UNAVAILABLE") => ({
      get: async () => {
        throw new BerthError(code, "no");
      },
    });
    assert.equal(await isKeptIn(failing("STATE_CORRUPT"), USE, "host-a"), true);
    await assert.rejects(isKeptIn(failing("STORE_UNAVAILABLE"), USE, "host-a"));
    const get = async () => storedAs("claim", OWN);
    assert.equal(await isKeptIn({ get } as never, USE, "host-a"), true);
  });
});

describe("inUseOf", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-netns-"));
  const link = join(folder, "box");
  symlinkSync("/proc/17/ns/net", link); // whether that process is there does not matter
  after(() => rmSync(folder, { recursive: true }));

  const attached = attachment("box", { claim: "shop/mysql-0" });

  for (const [what, netns, netnsSeen, unseen] of [
    ["of one whose namespace is a file", "/run/netns/box", "4:17", undefined],
    [
      "of one that a process names",
      "/proc/17/ns/net",
      "4:17",
      /^a process named its network namespace: \/proc\/17\/ns\/net$/,
    ],
    [
      "of one whose name is a link to what a process names",
      link,
      "4:17",
      /^a process named its network namespace: \/proc\/17\/ns\/net$/,
    ],
    [
      "of one that was not seen",
      "/run/netns/box",
      false,
      /^nothing was to be seen of its network namespace$/,
    ],
  ] as const) {
    it(`says whether the host sees the end ${what}`, () => {
      const [use] = inUseOf({ ...attached, netns, netnsSeen });
      if (unseen === undefined) assert.equal(use?.unseen?.(), undefined);
      else assert.match(use?.unseen?.() ?? "", unseen);
    });
  }
});
