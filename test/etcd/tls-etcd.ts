// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import { createClock } from "../../system/clock.ts";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { eventually } from "../support/eventually.ts";
import { openHandle } from "./handles.ts";
import { type Members, startMembers } from "./members.ts";

/** An etcd of one member that asks for certificates, and a folder with those of a client. */
export class TlsEtcd {
  readonly folder = mkdtempSync(join(tmpdir(), "etcd-tls-"));
  readonly #ca: CertificatePair;
  #members: Members | undefined;

  private constructor(ca: CertificatePair) {
    this.#ca = ca;
  }

  static async start(): Promise<TlsEtcd> {
    const ca = await issueAuthority(createClock());
    const etcd = new TlsEtcd(ca);
    await etcd.#serve();
    return etcd;
  }

  get urls(): readonly string[] {
    return this.#members?.urls ?? [];
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  /** What `berthctl` needs for it. */
  get flags(): readonly string[] {
    const files = { cacert: "etcd-ca.pem", cert: "etcd.pem", key: "etcd-key.pem" };
    return Object.entries(files).flatMap(([flag, name]) => [`--etcd-${flag}`, this.file(name)]);
  }

  /** What a client needs for it. */
  get access(): EtcdAccess {
    const [caFile, certFile, keyFile] = [
      this.file("etcd-ca.pem"),
      this.file("etcd.pem"),
      this.file("etcd-key.pem"),
    ];
    return { endpoints: this.urls, caFile, certFile, keyFile };
  }

  /** `etcdConfig` with the certificates of a folder that has them all. */
  config(folder: string = this.folder): Readonly<Record<string, string>> {
    return {
      etcdURL: this.urls[0] ?? "",
      etcdCertFile: join(folder, "etcd.pem"),
      etcdKeyFile: join(folder, "etcd-key.pem"),
      etcdTrustedCAFileFile: join(folder, "etcd-ca.pem"),
    };
  }

  /** Writes a new client certificate and its key, by these names. */
  async issue(cert: string, key: string): Promise<void> {
    const pair = await issueClient(this.#ca, { name: "host", organization: "berth" }, createClock());
    writeFileSync(this.file(cert), pair.cert);
    writeFileSync(this.file(key), pair.key);
  }

  async close(): Promise<void> {
    await this.#members?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #serve(): Promise<void> {
    const names = { dnsNames: ["localhost"], addresses: ["127.0.0.1"] };
    const server = await issueServingCertificate(this.#ca, names, createClock());
    writeFileSync(this.file("etcd-ca.pem"), this.#ca.cert);
    writeFileSync(this.file("server.pem"), server.cert);
    writeFileSync(this.file("server-key.pem"), server.key);
    await this.issue("etcd.pem", "etcd-key.pem");
    const tls = {
      cert: this.file("server.pem"),
      key: this.file("server-key.pem"),
      ca: this.file("etcd-ca.pem"),
    };
    this.#members = await startMembers({ count: 1, tls });
    const probe = openHandle(this.access);
    const asked = () =>
      probe.store.get("pool", "db").then(
        () => true,
        () => undefined,
      );
    await eventually("etcd serves", asked).finally(() => probe.close());
  }
}
