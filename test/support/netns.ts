// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Ended, run } from "./process.ts";

const BUILD = fileURLToPath(new URL("../../build", import.meta.url));
const PLUGIN_FOLDERS = ["/usr/lib/cni", "/opt/cni/bin"];
const NEEDED = ["bridge", "ptp", "macvlan", "host-local"];
/** `ip` and plugins find each other by it. */
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
/** Whether to ask who else has an IPv6 address before using it; the kernel goes by the higher of the two. */
const ACCEPT_DAD = ["all", "default"].map((what) => `/proc/sys/net/ipv6/conf/${what}/accept_dad`);

/** An interface address as `ip -j addr` has it. */
export interface InterfaceAddress {
  readonly interface: string;
  /** address/prefix length */
  readonly cidr: string;
  /** No other host has answered for it, and it can be used. */
  readonly usable: boolean;
}

/** Throws what `ip` printed when it fails. */
async function ip(...args: readonly string[]): Promise<string> {
  const { rc, stdout, stderr } = await run("ip", args, { env: { PATH } });
  if (rc !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}

async function pluginFolder(): Promise<string | undefined> {
  for (const folder of PLUGIN_FOLDERS) {
    const there = await Promise.all(
      NEEDED.map((name) =>
        access(`${folder}/${name}`).then(
          () => true,
          () => false,
        ),
      ),
    );
    if (!there.includes(false)) return folder;
  }
  return undefined;
}

/** Why real interfaces cannot be made here; undefined when they can. */
export async function whyNoNetwork(): Promise<string | undefined> {
  if (process.platform !== "linux") return "network namespaces need Linux";
  if (process.getuid?.() !== 0) return "network namespaces need root";
  if ((await pluginFolder()) === undefined) {
    return `no ${NEEDED.join(", ")} in ${PLUGIN_FOLDERS.join(" or ")} (Debian: containernetworking-plugins)`;
  }
  const probe = newName();
  try {
    await ip("netns", "add", probe);
    await ip("netns", "del", probe);
    return undefined;
  } catch (error) {
    return `network namespaces cannot be made: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Options for a suite that needs real interfaces: it is skipped, with the reason, where they cannot be made. In CI as
 * root it runs all the same, to fail: a gate that leaves out what it is there for is no gate.
 */
export async function skipWithoutNetwork(): Promise<{ readonly skip: string | false }> {
  const why = await whyNoNetwork();
  const mustRun = process.env["CI"] === "true" && process.getuid?.() === 0;
  if (why === undefined || mustRun) return { skip: false };
  console.log(`skipped: ${why}`);
  return { skip: why };
}

/** Of this process, and there still. */
const present = new Set<string>();
// A run that breaks off has no time for its hooks, and namespaces outlive processes.
process.on("exit", () => {
  for (const name of present) spawnSync("ip", ["netns", "del", name], { env: { PATH } });
});

/** Has the id of the test run in it, and is short enough for the name of an interface with a letter behind it. */
function newName(): string {
  const random = randomBytes(4).readUInt32BE().toString(36).padStart(7, "0").slice(-6);
  return `bt${process.env["BERTH_RUN"] ?? "alone"}${random}`;
}

/**
 * A host of its own: a namespace in which main plugins run and make their bridges and veths, and the namespaces of
 * its sandboxes. Nothing of it is in the namespace of the machine, and all of it goes with `remove`.
 */
export class NetworkHost {
  /** Of the namespace that plays the host. */
  readonly name: string;
  readonly plugins: string;
  readonly #namespaces = new Set<string>();

  private constructor(name: string, plugins: string) {
    this.name = name;
    this.plugins = plugins;
  }

  /** Throws, with the reason, where `whyNoNetwork` gives one. */
  static async make(): Promise<NetworkHost> {
    const why = await whyNoNetwork();
    const plugins = await pluginFolder();
    if (why !== undefined || plugins === undefined) throw new Error(why);
    const host = new NetworkHost(newName(), plugins);
    await host.#add(host.name, "hasty");
    return host;
  }

  /**
   * A sandbox; its path is `/run/netns/<name>`. `patient`: its kernel looks for others that have an IPv6 address
   * before it uses one, as usual. That takes seconds, so that it is left out elsewhere.
   */
  async sandbox(how: "patient" | "hasty" = "hasty"): Promise<string> {
    const name = newName();
    await this.#add(name, how);
    return name;
  }

  async #add(name: string, how: "patient" | "hasty"): Promise<void> {
    present.add(name);
    await ip("netns", "add", name);
    this.#namespaces.add(name);
    await ip("-n", name, "link", "set", "lo", "up");
    if (how === "patient") return;
    const { rc, stderr } = await this.exec(["sh", "-c", `echo 0 | tee ${ACCEPT_DAD.join(" ")}`], name);
    if (rc !== 0) throw new Error(`${ACCEPT_DAD.join(" ")} cannot be written: ${stderr}`);
  }

  async removeSandbox(name: string): Promise<void> {
    await ip("netns", "del", name);
    this.#namespaces.delete(name);
    present.delete(name);
  }

  /** A veth pair in the host's namespace, both ends up: the uplink that macvlan needs. */
  async uplink(): Promise<string> {
    const name = newName();
    await this.ip("link", "add", `${name}a`, "type", "veth", "peer", "name", `${name}b`);
    await this.ip("link", "set", `${name}a`, "up");
    await this.ip("link", "set", `${name}b`, "up");
    return `${name}a`;
  }

  /** Why the kernel makes no link of that type on an interface of the host; undefined: it does. */
  async whyNoLink(type: string, on: string): Promise<string | undefined> {
    const name = newName();
    try {
      await this.ip(
        "link",
        "add",
        "link",
        on,
        "name",
        name,
        "type",
        type,
        ...(type === "vlan" ? ["id", "9"] : []),
      );
      await this.ip("link", "del", name);
      return undefined;
    } catch (error) {
      return `this kernel makes no ${type}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** Runs `ip` in the host's namespace. */
  async ip(...args: readonly string[]): Promise<string> {
    return await ip("-n", this.name, ...args);
  }

  /** Runs a command in a namespace, the host's own unless one is named. */
  async exec(command: readonly string[], namespace: string = this.name): Promise<Ended> {
    return await run("ip", ["netns", "exec", namespace, ...command], { env: { PATH } });
  }

  /** What runs a main plugin in the host's namespace: a program and its arguments. */
  command(plugin: string): readonly [string, ...string[]] {
    return ["ip", "netns", "exec", this.name, `${this.plugins}/${plugin}`];
  }

  /** For main plugins: themselves and build/berth. */
  get cniPath(): string {
    return `${this.plugins}:${BUILD}`;
  }

  /** Global addresses of the sandbox's interfaces but `lo`, those of IPv4 first, each family in the kernel's order. */
  async addressesOf(sandbox: string): Promise<readonly InterfaceAddress[]> {
    const links: readonly Link[] = JSON.parse(await ip("-n", sandbox, "-j", "addr"));
    const found = links
      .filter(({ ifname }) => ifname !== "lo")
      .flatMap(({ ifname, addr_info }) => addr_info.map((info) => ({ ifname, info })))
      .filter(({ info }) => info.scope === "global");
    return found.map(({ ifname, info }) => ({
      interface: ifname,
      cidr: `${info.local}/${info.prefixlen}`,
      usable: info.tentative !== true && info.dadfailed !== true,
    }));
  }

  /** Names of the sandbox's interfaces but `lo`. */
  async interfacesOf(sandbox: string): Promise<readonly string[]> {
    const links: readonly Link[] = JSON.parse(await ip("-n", sandbox, "-j", "addr"));
    return links.map(({ ifname }) => ifname).filter((name) => name !== "lo");
  }

  /** `dst via gateway` of the routes of both families that have a gateway, sorted. */
  async routesOf(sandbox: string): Promise<readonly string[]> {
    const routes: Route[] = [];
    for (const family of ["-4", "-6"]) {
      const text = await ip("-n", sandbox, family, "-j", "route");
      routes.push(...(text.trim() === "" ? [] : (JSON.parse(text) as Route[])));
    }
    return routes
      .filter(({ gateway }) => gateway !== undefined)
      .map(({ dst, gateway }) => `${dst} via ${gateway}`)
      .sort();
  }

  /** Whether one of three pings from a namespace is answered. */
  async pings(from: string, to: string): Promise<boolean> {
    const { rc } = await this.exec(["ping", "-q", "-n", "-c", "1", "-w", "3", "-i", "0.2", to], from);
    return rc === 0;
  }

  /** Everything that is left goes; what is in a namespace goes with it. */
  async remove(): Promise<void> {
    for (const name of [...this.#namespaces].reverse()) {
      await this.removeSandbox(name).catch((error: unknown) => console.error("not removed", name, error));
    }
  }
}

interface Link {
  readonly ifname: string;
  readonly addr_info: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly tentative?: boolean;
    readonly dadfailed?: boolean;
  }[];
}

interface Route {
  readonly dst: string;
  readonly gateway?: string;
}
