// SPDX-License-Identifier: Apache-2.0
// The commands of docs/etcd.md, pasted as they are, on three hosts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { ETCD_URL, type NamedHost, Wired } from "./named-host.ts";

const ROOT = join(import.meta.dirname, "../..");
const NAMES = ["host-a", "host-b", "host-c"];

/** The blocks of commands of the first section, each as it is. */
function pasted(): readonly string[] {
  const [, section = ""] = readFileSync(join(ROOT, "docs/etcd.md"), "utf8").split("\n## ");
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
}

/** The first plugin of the example's list, as libcni hands it on. */
function network(): string {
  const list: {
    readonly cniVersion: string;
    readonly name: string;
    readonly plugins: readonly object[];
  } = JSON.parse(readFileSync(join(ROOT, "examples/etcd/lan.conflist"), "utf8"));
  const { cniVersion, name } = list;
  return JSON.stringify({ cniVersion, name, ...list.plugins[0] });
}

/** What a runtime does on a host; the address with its prefix length. */
async function startContainer(host: NamedHost): Promise<string> {
  const { wire } = host;
  const env = {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: `container-of-${host.name}`,
    CNI_NETNS: "/run/netns/box",
    CNI_IFNAME: "eth0",
    CNI_PATH: wire.cniPath,
  };
  const { stdout } = await host.sh(`ip netns add box; ${wire.plugins}/macvlan`, env, network());
  const answer: { readonly ips?: readonly { readonly address: string }[] } = JSON.parse(stdout);
  return answer.ips?.[0]?.address ?? assert.fail(stdout);
}

const withNetwork = await skipWithoutNetwork();

if (havePartsOrSkip(["etcd"])) {
  describe("docs/etcd.md", { skip: withNetwork.skip }, () => {
    const wired = new Wired();
    before(() => wired.start(NAMES));
    after(() => wired.close());

    it("has commands that do what it says, on three hosts with one etcd", async () => {
      const [up = "", look = "", fence = "", more] = pasted();
      assert.equal(more, undefined);
      const { hosts } = wired;
      for (const host of hosts) {
        const { rc, stdout, stderr } = await host.sh(up);
        assert.equal(rc, 0, stderr);
        assert.match(stdout, /^ready \(pid \d+, log \/var\/lib\/berth\/stack\.log\)\n$/);
      }
      const given = await Promise.all(hosts.map(startContainer));
      assert.equal(new Set(given).size, 3);
      for (const cidr of given) assert.match(cidr, /^10\.10\.20\.(5\d|6\d|70)\/24$/);
      const [a, , c] = hosts;
      const shown = await a?.sh(look);
      assert.equal(shown?.rc, 0, shown?.stderr);
      for (const name of NAMES) assert.match(shown?.stdout ?? "", new RegExp(`Attached .*${name}`));
      assert.match(
        shown?.stdout ?? "",
        /^10\.10\.20\.50 is (free|held)[\s\S]*^ok: 1 pool, 3 claims, 3 reservations, 3 attachments$/m,
      );
      assert.equal((await c?.sh("berthctl down"))?.rc, 0);
      const fenced = await a?.sh(`export BERTH_ETCD=${ETCD_URL}\n${fence}`);
      assert.equal(fenced?.rc, 0, fenced?.stderr);
      assert.match(fenced?.stdout ?? "", /host host-c is fenced, 1 claim is released\n$/);
    });
  });
}
