// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Store } from "../../allocator/store/store.ts";
import { run as runBerthctl } from "../../cli/run.ts";
import type { EnvDefaults } from "../../cli/terminal/target.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { type KubeItem, NODES, PODS, STATEFULSETS } from "../../kube/api/resource.ts";
import { createRandom } from "../../system/random.ts";
import { addrs, attachmentOf, bindingTo, claimRecord, DB_POOL, reservationsOf } from "../support/fixtures.ts";
import { type Json, pod as podObject, workload } from "../support/objects.ts";
import { commandFolder } from "../support/programs.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { ForwardClock } from "./forward-clock.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane, openUndefinedPlane } from "./shared-plane.ts";

/** Where berthctl and its other names are. */
export const BUILD = `${commandFolder()}/`;
/** Later than the records by hours, so that their ages do not depend on how fast the test is. */
const LATER_MS = 5 * 3_600_000;

export interface Called {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a call of berthctl printed and how it ended, run in this process. */
export async function callWith(setting: EnvDefaults, ...argv: readonly string[]): Promise<Called> {
  const out = { stdout: "", stderr: "" };
  const into = (name: "stdout" | "stderr") =>
    new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        out[name] += text;
        done();
      },
    });
  const clock = new ForwardClock();
  clock.forward(LATER_MS);
  const io = {
    stdout: into("stdout"),
    stderr: into("stderr"),
    stdin: async () => JSON.stringify(podObject("new", { annotations: { "berth.dev/ips": "10.20.0.70" } })),
    clock,
    random: createRandom(),
    uuid: randomUUID,
    ending: () => new AbortController().signal,
  };
  const code = await runBerthctl(argv, { io, dataDir: "/nonexistent/berth", user: "tester", setting });
  return { code, ...out };
}

/** As a user of these kubeconfigs has it, named by KUBECONFIG. */
export function settingOf(kubeconfigs: readonly string[]): EnvDefaults {
  return { kubectl: false, dataNamed: false, kubeconfigNamed: true, kubeconfigs, inCluster: false };
}

/** Lines of output, each ended. */
export function lines(...text: readonly string[]): string {
  return text.map((line) => `${line}\n`).join("");
}

/** Without what differs from run to run. */
export function steady(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, "TIME")
    .replaceAll(/\b\d+s$/gm, "AGE");
}

/** A real API server with Berth's kinds and records, and berthctl called on it with the rights of one user or another. */
export class BerthctlCluster {
  readonly plane: ControlPlane;
  readonly connection: Connection;
  readonly store: Store;
  /** What berthctl said before Berth's kinds were there, if there was such a time. */
  readonly notInstalled: Called | undefined;
  readonly #admin: EnvDefaults;

  private constructor(plane: ControlPlane, connection: Connection, notInstalled?: Called) {
    this.plane = plane;
    this.connection = connection;
    this.notInstalled = notInstalled;
    this.store = openStore(connection);
    this.#admin = settingOf([this.kubeconfig("admin")]);
  }

  static async start(): Promise<BerthctlCluster> {
    return await BerthctlCluster.#filled(await openControlPlane());
  }

  /** One that had no kinds of Berth's at first. */
  static async startNew(): Promise<BerthctlCluster> {
    const plane = await openUndefinedPlane();
    const notInstalled = await callWith(settingOf([kubeconfigOf(plane, "admin")]), "get", "pools");
    return await BerthctlCluster.#filled(plane, notInstalled);
  }

  static async #filled(plane: ControlPlane, notInstalled?: Called): Promise<BerthctlCluster> {
    try {
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, ["shop", "bank"]);
      const cluster = new BerthctlCluster(plane, connection, notInstalled);
      await cluster.#fill();
      return cluster;
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.plane.close();
  }

  /** Runs berthctl as admin. */
  async call(...argv: readonly string[]): Promise<Called> {
    return await callWith(this.#admin, ...argv);
  }

  kubeconfig(user: string, change?: (text: string) => string): string {
    return kubeconfigOf(this.plane, user, change);
  }

  async makePod(name: string, options: Parameters<typeof podObject>[1] = {}): Promise<KubeItem> {
    const { metadata, spec } = podObject(name, options) as { metadata: Json; spec: Json };
    const whole = { ...spec, automountServiceAccountToken: false };
    const made = await new Client(this.connection, PODS).create(
      { namespace: "shop", name },
      { metadata, spec: whole },
    );
    assert.ok(made);
    return made;
  }

  async makeNode(name: string, ready: boolean): Promise<void> {
    const nodes = new Client(this.connection, NODES);
    await nodes.create({ name }, {});
    const condition = {
      type: "Ready",
      status: ready ? "True" : "Unknown",
      reason: "Test",
      message: "",
      lastHeartbeatTime: "2026-01-01T00:00:00Z",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const body = { status: { conditions: [condition] } };
    await nodes.patch({ name }, { type: "merge", body }, "status");
  }

  async keep(claim: Claim): Promise<void> {
    for (const reservation of reservationsOf(claim)) await this.store.create("reservation", reservation);
    assert.equal((await this.store.create("claim", claim)).kind, "created");
  }

  /** A set of two whose first pod runs, and a claim that somebody made by hand in another namespace. */
  async #fill(): Promise<void> {
    await this.store.create("pool", DB_POOL);
    await this.makeNode("node-a", true);
    await this.makeNode("node-b", false);
    const annotations = { "berth.dev/ips": "10.20.0.70" };
    const { metadata, spec } = workload("StatefulSet", "mysql", { replicas: 2, annotations }) as {
      metadata: Json;
      spec: Json;
    };
    const containers = [{ name: "main", image: "registry.example/app:1" }];
    const template = { ...(spec["template"] as Json), spec: { containers } };
    const selector = { matchLabels: { app: "mysql" } };
    await new Client(this.connection, STATEFULSETS).create(
      { namespace: "shop", name: "mysql" },
      { metadata, spec: { ...spec, template, selector, serviceName: "mysql" } },
    );
    const runs = await this.makePod("mysql-0", {
      annotations: {
        ...annotations,
        "berth.dev/claim": "mysql-0",
        "berth.dev/addresses": "10.20.0.70,fd00:20::70",
      },
      spec: { nodeName: "node-a" },
    });
    await this.makePod("plain");
    const podUID = runs.metadata.uid;
    await this.keep(
      claimRecord({
        addresses: addrs("10.20.0.70", "fd00:20::70"),
        binding: bindingTo("mysql-0", "node-a", { podUID }),
        status: { attachment: attachmentOf("mysql-0", { podUID }) },
      }),
    );
    const identity = { kind: "Pod", apiVersion: "v1", name: "web" };
    const web = { namespace: "bank", name: "web", nonce: "n2", addresses: addrs("10.20.0.71") };
    await this.keep(claimRecord({ ...web, identity, handMade: true }));
  }
}

/** A file with a kubeconfig of that user, whose context has namespace shop. */
export function kubeconfigOf(plane: ControlPlane, user: string, change = (text: string) => text): string {
  const file = join(plane.folder, `${randomUUID()}.kubeconfig`);
  const config = JSON.parse(plane.kubeConfig(user).exportConfig());
  config.contexts[0].context.namespace = "shop";
  writeFileSync(file, change(JSON.stringify(config)));
  return file;
}
