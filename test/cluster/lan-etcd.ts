// SPDX-License-Identifier: Apache-2.0
// An etcd beside the cluster's own, which asks for client certificates. It runs on the control plane's machine.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClock } from "../../system/clock.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { partOf } from "../api/binaries.ts";
import type { Machine } from "./machine.ts";
import { ROUTER } from "./network.ts";
import type { Json } from "./objects.ts";

const DAEMON = "lan-etcd";
const URL = `https://${ROUTER}:12379`;
const PEER = "http://127.0.0.1:12380";
/** The files of the Secret. */
const [CA, CERT, KEY] = ["etcd-ca.pem", "etcd.pem", "etcd-key.pem"] as const;
const SERVER = ["server.pem", "server-key.pem"] as const;

export class LanEtcd {
  readonly #machine: Machine;
  readonly #folder: string;

  constructor(machine: Machine) {
    this.#machine = machine;
    this.#folder = machine.disk(DAEMON);
  }

  /** Serves what it has, for certificates of a new authority alone. */
  async serve(): Promise<void> {
    await this.stop();
    await this.#issue();
    const path = (name: string) => join(this.#folder, name);
    await this.#machine.start(DAEMON, [
      partOf("etcd"),
      ...[`--data-dir=${path("data")}`, "--unsafe-no-fsync", "--log-level=warn", "--client-cert-auth"],
      ...[`--listen-client-urls=${URL}`, `--advertise-client-urls=${URL}`],
      ...[`--listen-peer-urls=${PEER}`, `--initial-advertise-peer-urls=${PEER}`],
      `--initial-cluster=default=${PEER}`,
      ...[`--cert-file=${path(SERVER[0])}`, `--key-file=${path(SERVER[1])}`, `--trusted-ca-file=${path(CA)}`],
    ]);
  }

  async stop(): Promise<void> {
    await this.#machine.stop(DAEMON, "KILL");
  }

  /** With the certificates that it asks for now. */
  secret(name: string): Json {
    const stringData = Object.fromEntries(
      [CA, CERT, KEY].map((file) => [file, readFileSync(join(this.#folder, file), "utf8")]),
    );
    return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
  }

  /** `etcdConfig` of a network, with the certificates of a folder of the agents'. */
  config(folder: string): Json {
    return {
      etcdURL: URL,
      etcdCertFile: join(folder, CERT),
      etcdKeyFile: join(folder, KEY),
      etcdTrustedCAFileFile: join(folder, CA),
    };
  }

  /** What `berthctl` on this host needs for it. */
  get flags(): readonly string[] {
    const files = { cacert: CA, cert: CERT, key: KEY };
    const paths = Object.entries(files).flatMap(([flag, file]) => [
      `--etcd-${flag}`,
      join(this.#folder, file),
    ]);
    return ["--etcd", URL, ...paths];
  }

  async #issue(): Promise<void> {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const server = await issueServingCertificate(ca, { dnsNames: [], addresses: [ROUTER] }, clock);
    const client = await issueClient(ca, { name: "agents", organization: "berth" }, clock);
    const write = (name: string, text: string) =>
      writeFileSync(join(this.#folder, name), text, { mode: 0o600 });
    write(CA, ca.cert);
    write(SERVER[0], server.cert);
    write(SERVER[1], server.key);
    write(CERT, client.cert);
    write(KEY, client.key);
  }
}
