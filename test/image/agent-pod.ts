// SPDX-License-Identifier: Apache-2.0

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noopLogger } from "../../allocator/base/ports.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { noBlocks } from "../../ipam-plugin/agent/blocks/block-source.ts";
import { KnownPools } from "../../ipam-plugin/agent/blocks/known-pools.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import { createClock } from "../../system/clock.ts";
import { chartProgram } from "../support/chart-program.ts";
import { eventually } from "../support/eventually.ts";
import type { Archive } from "./archive.ts";
import { Container, type Volume } from "./container.ts";

const CONFLIST = "05-berth.conflist";
const NAMED_NETNS = "/run/netns";
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** How the pod's account reaches the API server. */
export interface PodApi {
  readonly port: number;
  readonly token: string;
  /** PEM. */
  readonly ca: string;
}

/** Folders of a node, and the agent's pod on it, made from the image. The API server is on this host. */
export class AgentPod {
  readonly folder = mkdtempSync(join(tmpdir(), "berth-pod-"));
  readonly #image: Archive;
  readonly #api: PodApi;
  #containers: Container[] = [];

  constructor(image: Archive, api: PodApi) {
    this.#image = image;
    this.#api = api;
    const folders = ["run", "data", "bin", "net.d", "conflist", "account"];
    for (const name of folders) mkdirSync(join(this.folder, name));
    this.configure("net");
    writeFileSync(join(this.folder, "account/token"), api.token);
    writeFileSync(join(this.folder, "account/ca.crt"), api.ca);
  }

  get socket(): string {
    return join(this.folder, "run/agent.sock");
  }

  /** Where the node's runtime would read it. */
  get conflist(): string {
    return join(this.folder, "net.d", CONFLIST);
  }

  /** Changes the ConfigMap: the network's name, and what its `ipam` says. Gives its text. */
  configure(network: string, ipam: object = {}): string {
    const plugins = [{ type: "bridge", ipam: { type: "berth", ...ipam } }];
    const text = JSON.stringify({ cniVersion: "1.0.0", name: network, plugins });
    writeFileSync(join(this.folder, "conflist", CONFLIST), text);
    return text;
  }

  /** As an agent leaves its journal that has heard from the API server that there are no pools. */
  async hadNoPools(): Promise<void> {
    const clock = createClock();
    const database = openDatabase(join(this.folder, "data/agent.db"), { clock, log: noopLogger });
    const journal = new Journal(database);
    const source = { ...noBlocks, pools: () => [] };
    await journal.write({ blocks: new KnownPools(source, journal.load().pools).change() });
    database.close();
  }

  /** Starts it and waits until it serves or has ended; without the host's /run/netns if it is not to see sandboxes. */
  async start({ sandboxes = true, env = {} } = {}): Promise<Container> {
    const program = chartProgram("agent");
    const agent = new Container(this.#image, {
      args: ["node", ...program.flags, program.script],
      uid: 0,
      env: { ...program.memory, ...program.kept, ...this.#environment, ...env },
      volumes: this.#volumes(sandboxes),
    });
    this.#containers.push(agent);
    let hasEnded = false;
    void agent.ended.then(() => {
      hasEnded = true;
    });
    const serves = () => hasEnded || agent.log.includes('"message":"agent serves"') || undefined;
    await eventually("the agent serves, or has ended", serves, 60_000);
    return agent;
  }

  async remove(): Promise<void> {
    for (const container of this.#containers) await container.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #environment(): Record<string, string> {
    return {
      BERTH_NODE_NAME: "node-a",
      BERTH_PORT: "0",
      BERTH_CNI_BIN: "/host/cni/bin",
      BERTH_CNI_CONF: "/host/cni/net.d",
      BERTH_CONFLIST: `/etc/berth/cni/${CONFLIST}`,
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: `${this.#api.port}`,
    };
  }

  #volumes(sandboxes: boolean): readonly Volume[] {
    const at = (name: string) => join(this.folder, name);
    return [
      { from: at("run"), to: "/run/berth" },
      { from: at("data"), to: "/var/lib/berth" },
      { from: at("bin"), to: "/host/cni/bin" },
      { from: at("net.d"), to: "/host/cni/net.d" },
      { from: at("conflist"), to: "/etc/berth/cni", readOnly: true },
      { from: at("account"), to: ACCOUNT, readOnly: true },
      ...(sandboxes ? [{ from: NAMED_NETNS, to: NAMED_NETNS, readOnly: true }] : []),
    ];
  }
}

/** What it wrote to its log, of that level: the messages. */
export function messagesOf({ log }: Container, wanted: string): readonly string[] {
  const lines = log.split("\n").filter((line) => line.startsWith("{"));
  const entries = lines.map((line): { readonly level: string; readonly message: string } => JSON.parse(line));
  return entries.filter(({ level }) => level === wanted).map(({ message }) => message);
}
