// SPDX-License-Identifier: Apache-2.0
// podman and containerd as they are, on hosts that share an etcd: nobody here wrote what calls the plugin.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { cgroupOf, cgroupsOf, makeCgroup, removeCgroups } from "../cluster/host.ts";
import { sleepingImage } from "../cluster/images.ts";
import { eventually } from "../support/eventually.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import {
  type Client,
  type ClientOptions,
  installNetwork,
  openContainerd,
  openPodman,
  type Runtime,
  whyNo,
} from "./container-clients.ts";
import { ETCD_URL, type NamedHost, Wired } from "./named-host.ts";

const CONFLIST = join(import.meta.dirname, "../../examples/etcd/lan.conflist");
const SIZE = 21;
const FULL = Array.from({ length: SIZE }, (_, i) => `10.10.20.${50 + i}`);
const OPEN: Readonly<Record<Runtime, (options: ClientOptions) => Promise<Client>>> = {
  podman: openPodman,
  containerd: openContainerd,
};

/** Which runtimes are here; what is missing is said. */
async function runtimesHere(): Promise<readonly Runtime[]> {
  const here: Runtime[] = [];
  for (const runtime of ["podman", "containerd"] as const) {
    const why = await whyNo(runtime);
    if (why === undefined) here.push(runtime);
    else console.log(`without ${runtime}: ${why}`);
  }
  return here;
}

const withNetwork = await skipWithoutNetwork();
const here = withNetwork.skip === false ? await runtimesHere() : [];
const skip = withNetwork.skip || (here.length === 0 && "neither podman with CNI nor containerd is here");

if (havePartsOrSkip(["etcd"])) {
  describe(`containers of ${here.join(" and ")} on two hosts`, { skip }, () => {
    const wired = new Wired();
    const cgroups = `etcd-${randomBytes(4).toString("hex")}`;
    const clients: Client[] = [];
    const live = new Map<string, Client>(); // container -> whose it is
    before(async () => {
      makeCgroup(cgroups);
      await wired.start(["host-a", "host-b"]);
      mkdirSync(join(wired.folder, "image"));
      const image = join(wired.folder, "image.tar");
      await sleepingImage(image, join(wired.folder, "image"));
      for (const [i, host] of wired.hosts.entries()) {
        await installNetwork({ host }, CONFLIST);
        await up(host);
        const open = OPEN[here[i % here.length] ?? assert.fail()];
        clients.push(await open({ host, image, cgroup: cgroupOf(cgroups), folder: wired.folder }));
      }
    });
    after(async () => {
      await wired.close();
      await eventually("all cgroups go", () => {
        removeCgroups(cgroups);
        return cgroupsOf(cgroups).length === 0 || undefined;
      });
    });

    const up = (host: NamedHost) =>
      host.must(`berthctl up --etcd ${ETCD_URL} --socket /run/berth/agent.sock --detach`);
    const berthctl = async (text: string) =>
      await (wired.hosts[0] ?? assert.fail()).must(`berthctl --etcd ${ETCD_URL} ${text}`);
    const client = (runtime: Runtime) => clients.find((one) => one.runtime === runtime);

    async function start(on: Client, name: string, asked?: string): Promise<void> {
      const ended = await on.run(name, asked);
      assert.equal(ended, undefined, `${ended?.stdout}${ended?.stderr}`);
      live.set(name, on);
    }

    async function remove(name: string): Promise<void> {
      await (live.get(name) ?? assert.fail()).remove(name);
      live.delete(name);
    }

    /** As the kernel has it in the container. */
    async function addressOf(name: string): Promise<string> {
      const { host, pid } = live.get(name) ?? assert.fail();
      const text = await host.must(`nsenter --target=${await pid(name)} --net ip -4 -o addr show dev eth0`);
      return /inet (\S+)\/24 /.exec(text)?.[1] ?? assert.fail(text);
    }

    async function held(): Promise<readonly string[]> {
      const { items }: { items: readonly { metadata: { name: string } }[] } = JSON.parse(
        await berthctl("get reservations -o json"),
      );
      return items.map(({ metadata }) => metadata.name).toSorted();
    }

    async function heldAre(expected: readonly string[]): Promise<void> {
      await eventually(
        `held are ${expected.join(", ")}`,
        async () => JSON.stringify(await held()) === JSON.stringify(expected.toSorted()) || undefined,
      );
    }

    async function areFree(addresses: readonly string[]): Promise<void> {
      await eventually(`${addresses.join(" and ")} are free`, async () => {
        const now = await held();
        return addresses.every((address) => !now.includes(address)) || undefined;
      });
    }

    it("21 have an address each, the 22nd is refused in words, and they reach each other", async () => {
      const names = FULL.map((_, i) => `box-${i}`);
      await Promise.all(
        clients.map(async (each, of) => {
          for (const name of names.filter((_, i) => i % clients.length === of)) await start(each, name);
        }),
      );
      const given: string[] = [];
      for (const name of names) given.push(await addressOf(name));
      assert.deepEqual(given.toSorted(), FULL);
      await heldAre(FULL);
      for (const each of clients) {
        const refused = await each.run("one-too-many");
        assert.match(
          `${refused?.stdout}${refused?.stderr}`,
          /no free IPv4 address in pool "lan": 21 are held/,
          each.runtime,
        );
      }
      const [near = "", far = ""] = names;
      const { host, pid } = live.get(near) ?? assert.fail();
      await host.must(`nsenter --target=${await pid(near)} --net ping -q -c 1 -w 5 ${await addressOf(far)}`);
      assert.match(await berthctl("check"), /^ok: 1 pool, 21 claims, 21 reservations/);
    });

    it("a removal gives the address back, also while the host's agent is down", async () => {
      const [first, second] = clients;
      if (first === undefined || second === undefined) assert.fail();
      const freed: string[] = [];
      for (const name of ["box-0", "box-1"]) {
        freed.push(await addressOf(name));
        await remove(name);
      }
      await heldAre(FULL.filter((address) => !freed.includes(address)));
      for (const each of clients) {
        const name = [...live].find(([, of]) => of === each)?.[0] ?? assert.fail();
        freed.push(await addressOf(name));
        await each.host.must("berthctl down");
        await remove(name);
        await up(each.host);
      }
      await heldAre(FULL.filter((address) => !freed.includes(address)));
      for (const [i, each] of [second, first, second, first].entries()) await start(each, `next-${i}`);
      await heldAre(FULL);
    });

    it("podman's --ip is that address, or refused with the name of who has it", async (t) => {
      const podman = client("podman");
      if (podman === undefined) return t.skip("no podman");
      const freed = await addressOf("next-0");
      const taken = await addressOf("next-2");
      await remove("next-0");
      const refused = await podman.run("thief", taken);
      assert.match(
        `${refused?.stderr}`,
        new RegExp(`${taken.replaceAll(".", "\\.")} in pool "lan" is held by`),
      );
      await start(podman, "asked", freed);
      assert.equal(await addressOf("asked"), freed);
      await remove("asked");
      await heldAre(FULL.filter((address) => address !== freed));
    });

    it("of a claim made by hand the container of that name has the address", async (t) => {
      const podman = client("podman");
      if (podman === undefined) return t.skip("no podman");
      await berthctl("reserve default/recorder --pool lan");
      await start(podman, "recorder");
      const [, kept] = /^default +recorder +(\S+) .* Attached /m.exec(await berthctl("get claims")) ?? [];
      assert.equal(await addressOf("recorder"), kept);
    });

    it("podman's second network is an interface of its own, and what is refused there leaves nothing of the first", async (t) => {
      const podman = client("podman");
      if (podman === undefined) return t.skip("no podman");
      const { host } = podman;
      const lan = await host.must("cat /etc/cni/net.d/lan.conflist");
      const second = lan.replaceAll('"lan"', '"second"').replaceAll("10.10.20.", "10.10.30.");
      await host.must(`cat >/etc/cni/net.d/second.conflist <<'EOF'\n${second}\nEOF`);
      const gone = [...live.keys()].slice(0, 2);
      const freed = await Promise.all(gone.map(addressOf));
      for (const name of gone) await remove(name);
      await areFree(freed);
      const names = ["two-a", "two-b"];
      for (const [i, name] of names.entries()) {
        const ended = await podman.run(name, undefined, `second:ip=10.10.30.6${i}`);
        assert.equal(ended, undefined, `${ended?.stdout}${ended?.stderr}`);
        live.set(name, podman);
      }
      const within = async (name: string, command: string) =>
        await host.must(`nsenter --target=${await podman.pid(name)} --net ${command}`);
      const links = await within("two-a", "ip -4 -o addr show scope global");
      assert.match(links, /eth0 +inet 10\.10\.20\.\d+\/24/);
      assert.match(links, /eth1 +inet 10\.10\.30\.60\/24/);
      await within("two-a", `ping -q -c 1 -w 5 -I eth0 ${await addressOf("two-b")}`);
      await within("two-a", "ping -q -c 1 -w 5 -I eth1 10.10.30.61");
      const own = await addressOf("two-b");
      await remove("two-b");
      await areFree([own, "10.10.30.61"]);
      const before = await held();
      const refused = await podman.run("three", undefined, "second:ip=10.10.30.60");
      assert.match(`${refused?.stderr}`, /10\.10\.30\.60 in pool "second" is held by/);
      await heldAre(before);
      await remove("two-a");
      await host.must("rm /etc/cni/net.d/second.conflist");
    });

    it("after all are gone nothing is held but what a person keeps", async () => {
      await Promise.all(
        clients.map(async (each) => {
          for (const [name, of] of live) if (of === each) await remove(name);
        }),
      );
      await eventually("what is left", async () => {
        const said = await berthctl("get claims");
        return /^NAMESPACE.*\ndefault +recorder .*\n$|^no claims\n$/.test(said) || undefined;
      });
      assert.match(await berthctl("check"), /^ok/);
    });
  });
}
