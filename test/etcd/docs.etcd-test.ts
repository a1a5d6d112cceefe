// SPDX-License-Identifier: Apache-2.0
// The commands of docs/etcd.md, pasted as they are: three hosts with names, folders and networks of their own, and an etcd beside them.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip, partOf } from "../api/binaries.ts";
import { Daemon } from "../api/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkHost, skipWithoutNetwork } from "../support/netns.ts";
import { compileCache, type Ended, run } from "../support/process.ts";
import { BERTHCTL } from "../support/stack-folder.ts";

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

/** A host with a name, a /var/lib and a /run of its own. */
class NamedHost {
  readonly name: string;
  readonly #wire: NetworkHost;
  readonly #sandbox: string;
  readonly #folder: string;
  readonly #alive: Daemon;
  #pid = 0;

  constructor(name: string, wire: NetworkHost, to: { readonly sandbox: string; readonly folder: string }) {
    this.name = name;
    this.#wire = wire;
    this.#sandbox = to.sandbox;
    this.#folder = to.folder;
    const own = `hostname ${name} && mount -t tmpfs tmpfs /var/lib && mkdir -p /run/netns /run/berth && mount -t tmpfs tmpfs /run/berth`;
    const pidFile = join(to.folder, `${name}.pid`);
    const command = ["ip", "netns", "exec", wire.name, "unshare", "--uts", "--mount", "sh", "-c"];
    const script = `${own} && echo $$ > ${pidFile} && exec sleep 1000`;
    this.#alive = new Daemon(name, [...command, script], join(to.folder, `${name}.log`));
  }

  async start(): Promise<void> {
    this.#alive.start();
    this.#pid = await eventually(`${this.name} is there`, () => {
      try {
        return Number(readFileSync(join(this.#folder, `${this.name}.pid`), "utf8")) || undefined;
      } catch {
        return undefined;
      }
    });
  }

  async sh(text: string, env: Readonly<Record<string, string>> = {}, stdin = ""): Promise<Ended> {
    const path = `${join(this.#folder, "bin")}:/usr/sbin:/usr/bin:/sbin:/bin`;
    return await run("nsenter", [`--target=${this.#pid}`, "--mount", "--uts", "--net", "sh", "-ec", text], {
      env: { PATH: path, ...compileCache(), ...env },
      stdin: { text: stdin },
    });
  }

  /** What a runtime does; the address with its prefix length. */
  async startContainer(): Promise<string> {
    const env = {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: `container-of-${this.name}`,
      CNI_NETNS: `/run/netns/${this.#sandbox}`,
      CNI_IFNAME: "eth0",
      CNI_PATH: this.#wire.cniPath,
    };
    const { stdout } = await this.sh(`${this.#wire.plugins}/macvlan`, env, network());
    const answer: { readonly ips?: readonly { readonly address: string }[] } = JSON.parse(stdout);
    return answer.ips?.[0]?.address ?? assert.fail(stdout);
  }

  async stop(): Promise<void> {
    await this.sh("berthctl down || true");
    await this.#alive.stop("SIGKILL");
  }
}

const withNetwork = await skipWithoutNetwork();

if (havePartsOrSkip(["etcd"])) {
  describe("docs/etcd.md", { skip: withNetwork.skip }, () => {
    const folder = mkdtempSync(join(tmpdir(), "docs-"));
    const wires: NetworkHost[] = [];
    const hosts: NamedHost[] = [];
    let etcd: Daemon;

    before(async () => {
      mkdirSync(join(folder, "bin"));
      symlinkSync(BERTHCTL, join(folder, "bin/berthctl"));
      const middle = await NetworkHost.make();
      wires.push(middle);
      await middle.ip("link", "add", "br0", "type", "bridge");
      await middle.ip("addr", "add", "10.0.0.1/24", "dev", "br0");
      await middle.ip("link", "set", "br0", "up");
      for (const [i, name] of NAMES.entries()) {
        const wire = await NetworkHost.make();
        wires.push(wire);
        for (const port of ["eth0", "eth1"]) {
          const end = `${name}${port}`;
          const to = ["peer", "name", port, "netns", wire.name];
          await middle.ip("link", "add", end, "type", "veth", ...to);
          await middle.ip("link", "set", end, "master", "br0", "up");
          await wire.ip("link", "set", port, "up");
        }
        await wire.ip("addr", "add", `10.0.0.${11 + i}/24`, "dev", "eth0");
        const host = new NamedHost(name, wire, { sandbox: await wire.sandbox(), folder });
        hosts.push(host);
      }
      const urls = ["--listen-client-urls", "--advertise-client-urls"].map(
        (flag) => `${flag}=http://10.0.0.1:2379`,
      );
      const where = [`--data-dir=${join(folder, "etcd")}`, "--unsafe-no-fsync", "--log-level=warn"];
      const command = ["ip", "netns", "exec", middle.name, partOf("etcd"), ...where, ...urls];
      etcd = new Daemon("etcd", command, join(folder, "etcd.log"));
      etcd.start();
      for (const host of hosts) await host.start();
    });
    after(async () => {
      for (const host of hosts) await host.stop();
      await etcd?.stop("SIGKILL");
      for (const wire of wires) await wire.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    it("has commands that do what it says, on three hosts with one etcd", async () => {
      const [up = "", look = "", fence = "", more] = pasted();
      assert.equal(more, undefined);
      for (const host of hosts) {
        const { rc, stdout, stderr } = await host.sh(up);
        assert.equal(rc, 0, stderr);
        assert.match(stdout, /^ready \(pid \d+, log \/var\/lib\/berth\/stack\.log\)\n$/);
      }
      const given = await Promise.all(hosts.map((host) => host.startContainer()));
      assert.equal(new Set(given).size, 3);
      for (const cidr of given) assert.match(cidr, /^10\.10\.20\.(5\d|6\d|70)\/24$/);
      const [a, , c] = hosts;
      const shown = await a?.sh(look);
      assert.equal(shown?.rc, 0, shown?.stderr);
      for (const name of NAMES) assert.match(shown?.stdout ?? "", new RegExp(`Attached .*${name}`));
      assert.match(
        shown?.stdout ?? "",
        /^10\.10\.20\.50 is (free|held)[\s\S]*^ok: 1 pools, 3 claims, 3 reservations, 3 attachments$/m,
      );
      assert.equal((await c?.sh("berthctl down"))?.rc, 0);
      const fenced = await a?.sh(`export BERTH_ETCD=http://10.0.0.1:2379\n${fence}`);
      assert.equal(fenced?.rc, 0, fenced?.stderr);
      assert.match(fenced?.stdout ?? "", /host host-c is fenced, 1 claims are released\n$/);
    });
  });
}
