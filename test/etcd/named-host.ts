// SPDX-License-Identifier: Apache-2.0
// Hosts with names, processes, folders and networks of their own, on one wire, and an etcd beside them.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partOf } from "../api/binaries.ts";
import { Daemon } from "../api/daemon.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkHost } from "../support/netns.ts";
import { compileCache, type Ended, type Env, run } from "../support/process.ts";
import { BERTHCTL } from "../support/stack-folder.ts";

/** Where the etcd listens for all hosts. */
export const ETCD_URL = "http://10.0.0.1:2379";

/** /var/lib and /run are empty; what is written to /etc and /opt is seen here alone. */
const OWN_FOLDERS = `
set -e
hostname "$1"
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /run
mkdir /run/netns
for folder in etc opt; do
  mkdir -p /run/over/$folder/upper /run/over/$folder/work
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=/run/over/$folder/upper,workdir=/run/over/$folder/work" /$folder
done
mount --make-rshared /
touch /run/is-up
exec sleep 2147483647`;

export class NamedHost {
  readonly name: string;
  readonly wire: NetworkHost;
  readonly #folder: string;
  readonly #env: Env;
  #alive: Daemon;
  #pid = 0;

  constructor(name: string, wire: NetworkHost, folder: string, env: Env = {}) {
    this.name = name;
    this.wire = wire;
    this.#folder = folder;
    this.#env = env;
    const own = ["unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    const inside = [...own, "bash", "-c", OWN_FOLDERS, "host", name];
    const outside = `echo $$ >"$0"; exec nsenter --net=/run/netns/${wire.name} "$@"`;
    const command = ["sh", "-c", outside, this.#pidFile, ...inside];
    this.#alive = new Daemon(name, command, join(folder, `${name}.log`));
  }

  async start(): Promise<void> {
    rmSync(this.#pidFile, { force: true });
    this.#alive.start();
    this.#pid = await eventually(`${this.name} is up`, async () => {
      const pid = this.#first();
      if (pid === undefined) return undefined;
      const { rc } = await run("nsenter", [`--target=${pid}`, "--mount", "test", "-e", "/run/is-up"]);
      return rc === 0 ? pid : undefined;
    });
  }

  /** The power is gone: its processes end at once, and its folders with them. */
  async stop(): Promise<void> {
    await this.#alive.stop("SIGKILL");
  }

  async sh(text: string, env: Env = {}, stdin = ""): Promise<Ended> {
    const path = `${join(this.#folder, "bin")}:/usr/sbin:/usr/bin:/sbin:/bin`;
    const into = [`--target=${this.#pid}`, "--mount", "--uts", "--ipc", "--net", "--pid"];
    return await run("nsenter", [...into, "sh", "-ec", text], {
      env: { PATH: path, HOME: "/root", ...compileCache(), ...this.#env, ...env },
      stdin: { text: stdin },
    });
  }

  /** What a command prints that must succeed. */
  async must(text: string): Promise<string> {
    const { rc, stdout, stderr } = await this.sh(text);
    if (rc !== 0) throw new Error(`${this.name}: ${text}: ${stdout}${stderr}`);
    return stdout;
  }

  get #pidFile(): string {
    return join(this.#folder, `${this.name}.pid`);
  }

  /** The first process within, by its number here. */
  #first(): number | undefined {
    try {
      const outer = readFileSync(this.#pidFile, "utf8").trim();
      return Number(readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8").split(" ")[0]) || undefined;
    } catch {
      return undefined;
    }
  }
}

/** One wire, 10.0.0.0/24 on each host's eth0, and an etcd on it; eth1 is for containers. `berthctl` is in every PATH. */
export class Wired {
  readonly folder = mkdtempSync(join(tmpdir(), "wired-"));
  readonly hosts: NamedHost[] = [];
  readonly #wires: NetworkHost[] = [];
  #etcd: Daemon | undefined;

  async start(names: readonly string[], env: Env = {}): Promise<void> {
    mkdirSync(join(this.folder, "bin"));
    symlinkSync(BERTHCTL, join(this.folder, "bin/berthctl"));
    const middle = await this.#wire();
    await middle.ip("link", "add", "br0", "type", "bridge");
    await middle.ip("addr", "add", "10.0.0.1/24", "dev", "br0");
    await middle.ip("link", "set", "br0", "up");
    this.#etcd = this.#startEtcd(middle);
    for (const [i, name] of names.entries()) {
      const wire = await this.#wire();
      for (const port of ["eth0", "eth1"]) {
        const end = `${name}${port}`;
        await middle.ip("link", "add", end, "type", "veth", "peer", "name", port, "netns", wire.name);
        await middle.ip("link", "set", end, "master", "br0", "up");
        await wire.ip("link", "set", port, "up");
      }
      await wire.ip("addr", "add", `10.0.0.${11 + i}/24`, "dev", "eth0");
      const host = new NamedHost(name, wire, this.folder, env);
      this.hosts.push(host);
      await host.start();
    }
  }

  async close(): Promise<void> {
    for (const host of this.hosts) await host.stop();
    await this.#etcd?.stop("SIGKILL");
    for (const wire of this.#wires) await wire.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #wire(): Promise<NetworkHost> {
    const wire = await NetworkHost.make();
    this.#wires.push(wire);
    return wire;
  }

  #startEtcd(middle: NetworkHost): Daemon {
    const urls = ["--listen-client-urls", "--advertise-client-urls"].map((flag) => `${flag}=${ETCD_URL}`);
    const where = [`--data-dir=${join(this.folder, "etcd")}`, "--unsafe-no-fsync", "--log-level=warn"];
    const command = ["ip", "netns", "exec", middle.name, partOf("etcd"), ...where, ...urls];
    const etcd = new Daemon("etcd", command, join(this.folder, "etcd.log"));
    etcd.start();
    return etcd;
  }
}
