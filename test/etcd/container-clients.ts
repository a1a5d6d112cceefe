// SPDX-License-Identifier: Apache-2.0
// Container runtimes that others have written, on one host each: podman, and containerd with its own `ctr`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUSYBOX_IMAGE } from "../cluster/images.ts";
import { eventually } from "../support/eventually.ts";
import { type Ended, run } from "../support/process.ts";
import type { NamedHost } from "./named-host.ts";

export type Runtime = "podman" | "containerd";

const PROGRAMS: Readonly<Record<Runtime, readonly string[]>> = {
  podman: ["podman", "conmon", "runc", "busybox"],
  containerd: ["containerd", "ctr", "runc", "busybox"],
};

/** Why a runtime cannot be used here; undefined: it can. */
export async function whyNo(runtime: Runtime): Promise<string | undefined> {
  const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
  for (const program of PROGRAMS[runtime]) {
    const { rc } = await run("sh", ["-c", `command -v ${program}`], { env });
    if (rc !== 0) return `no ${program}: make build/.containers installs it where Debian has it`;
  }
  if (runtime === "containerd") return undefined;
  const { stdout } = await run("podman", ["--version"], { env });
  const major = Number(/version (\d+)/.exec(stdout)?.[1] ?? 0);
  return major > 4 ? `${stdout.trim()} has no CNI: versions up to 4 have` : undefined;
}

/** Containers of one host's runtime in the network `lan`. */
export interface Client {
  readonly host: NamedHost;
  readonly runtime: Runtime;
  /** Starts a container: how that ended, or undefined while it runs. podman alone takes further networks, as `second:ip=10.10.30.60`. */
  run(name: string, asked?: string, further?: string): Promise<Ended | undefined>;
  /** The process within, as the host counts. */
  pid(name: string): Promise<string>;
  /** Ends it, and it is gone. */
  remove(name: string): Promise<void>;
}

export interface ClientOptions {
  readonly host: NamedHost;
  /** An archive with the image. */
  readonly image: string;
  /** The parent of all its cgroups. */
  readonly cgroup: string;
  readonly folder: string;
}

/** The plugins where a runtime finds them, and the example's network as the only one. */
export async function installNetwork({ host }: Pick<ClientOptions, "host">, conflist: string): Promise<void> {
  const plugin = join(import.meta.dirname, "../../build/berth");
  await host.must(`
    mkdir -p /opt/cni/bin /etc/cni/net.d
    ln -sf ${host.wire.plugins}/* /opt/cni/bin/ 2>/dev/null || true
    ln -sf ${plugin} /opt/cni/bin/berth
    rm -f /etc/cni/net.d/*
    cp ${conflist} /etc/cni/net.d/`);
}

export async function openPodman({ host, image, cgroup, folder }: ClientOptions): Promise<Client> {
  const config = join(folder, `${host.name}-containers.conf`);
  const storage = join(folder, `${host.name}-storage.conf`);
  const engine = `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n`;
  const network = `[network]\nnetwork_backend = "cni"\ncni_plugin_dirs = ["/opt/cni/bin"]\n`;
  writeFileSync(config, network + engine);
  const at = `graphroot = "/var/lib/containers"\nrunroot = "/run/containers"\n`;
  writeFileSync(storage, `[storage]\ndriver = "overlay"\n${at}`);
  const podman = `CONTAINERS_CONF=${config} CONTAINERS_STORAGE_CONF=${storage} podman`;
  await host.must(`${podman} load -q -i ${image}`);
  const backend = await host.must(`${podman} info --format '{{.Host.NetworkBackend}}'`);
  if (backend.trim() !== "cni") throw new Error(`podman's networks are ${backend}`);
  const pidFile = (name: string) => `/run/${name}.pid`;
  const own = `--cgroups no-conmon --cgroup-parent ${cgroup}`;
  return {
    host,
    runtime: "podman",
    async run(name, asked, further) {
      const ip = asked === undefined ? "" : `--ip ${asked}`;
      // podman takes its networks in any order, and calls their interfaces as they come
      const network =
        further === undefined
          ? "--network lan"
          : `--network lan:interface_name=eth0 --network ${further},interface_name=eth1`;
      const how = `${own} --pidfile ${pidFile(name)} ${network} ${ip}`;
      const ended = await host.sh(`${podman} run -d --name ${name} ${how} ${BUSYBOX_IMAGE}`);
      if (ended.rc === 0) return undefined;
      await host.sh(`${podman} rm -f -t 0 ${name}`);
      return ended;
    },
    // podman itself takes a quarter of a second of a processor to say it
    pid: async (name) => (await host.must(`cat ${pidFile(name)}`)).trim(),
    remove: async (name) => void (await host.must(`${podman} rm -f -t 0 ${name}`)),
  };
}

const CONTAINERD = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "/run/containerd/containerd.sock"
`;

export async function openContainerd({ host, image, cgroup, folder }: ClientOptions): Promise<Client> {
  const config = join(folder, `${host.name}-containerd.toml`);
  writeFileSync(config, CONTAINERD);
  await host.must(`setsid containerd --config ${config} >/run/containerd.log 2>&1 </dev/null &`);
  await eventually("containerd answers", async () =>
    (await host.sh("ctr version")).rc === 0 ? true : undefined,
  );
  await host.must(`ctr images import ${image}`);
  const isRunning = async (name: string) =>
    new RegExp(`^${name} .*RUNNING`, "m").test(await host.must("ctr tasks ls"));
  const ends = new Map<string, Promise<Ended>>(); // name -> `ctr run`, which sends the DEL when the container has ended
  return {
    host,
    runtime: "containerd",
    async run(name) {
      const ended = host.sh(
        `ctr run --rm --cni --null-io --cgroup ${cgroup}/${name} ${BUSYBOX_IMAGE} ${name}`,
      );
      ends.set(name, ended);
      let isOver = false;
      const started = async () => {
        await eventually(`${name} runs`, async () => isOver || (await isRunning(name)) || undefined);
        return undefined;
      };
      return await Promise.race([ended, started()]).finally(() => {
        isOver = true;
      });
    },
    async pid(name) {
      const tasks = await host.must("ctr tasks ls");
      return new RegExp(`^${name} +(\\d+) `, "m").exec(tasks)?.[1] ?? "";
    },
    async remove(name) {
      await host.must(`ctr tasks kill -s KILL ${name}`);
      await ends.get(name);
    },
  };
}
