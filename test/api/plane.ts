// SPDX-License-Identifier: Apache-2.0
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Connection, connect } from "../../kube/api/connection.ts";
import { createClock } from "../../system/clock.ts";
import { type Ended, run } from "../support/process.ts";
import { ON_ONE_PROCESSOR, partOf } from "./binaries.ts";
import { TokenConfig } from "./token-config.ts";

/** A person or program that the API server knows by a token. */
export interface TestUser {
  readonly name: string;
  readonly groups: readonly string[];
}

export const ADMIN: TestUser = { name: "admin", groups: ["system:masters"] };

/** Who the webhook is to the API server, as a user that a control plane may be started with. */
export const WEBHOOK_USER: TestUser = {
  name: "system:serviceaccount:berth-system:berth-webhook",
  groups: ["system:serviceaccounts", "system:serviceaccounts:berth-system"],
};

/**
 * For `kubectl create` and `apply`, where nothing is about fields that are not there (misspelt.api-test.ts): to know whether the
 * API server looks for such, kubectl reads what that documents of all kinds of the group, for pods a MB, which takes it twice
 * as long as all the rest.
 */
export const FIELDS_UNSEEN = "--validate=false";

/** Where a control plane is, and by what tokens it knows its users. */
export interface PlaneAccess {
  readonly url: string;
  /** Of its etcd, which anybody on this host may write into. */
  readonly etcdUrl: string;
  /** PEM of the authority that signed the API server's certificate. */
  readonly ca: string;
  /** What is asked by accounts of Berth, where the API server keeps that. */
  readonly auditLog: string;
  /** user name -> token */
  readonly tokens: Readonly<Record<string, string>>;
}

/** An API server with its etcd, which a test may use, and a folder for what the test needs beside it. */
export class ControlPlane {
  readonly url: string;
  readonly etcdUrl: string;
  readonly ca: string;
  readonly auditLog: string;
  readonly folder: string;
  readonly #tokens: Readonly<Record<string, string>>;
  readonly #connections: Connection[] = [];

  constructor(access: PlaneAccess, folder: string) {
    this.url = access.url;
    this.etcdUrl = access.etcdUrl;
    this.ca = access.ca;
    this.auditLog = access.auditLog;
    this.folder = folder;
    this.#tokens = access.tokens;
  }

  get access(): PlaneAccess {
    const { url, etcdUrl, ca, auditLog } = this;
    return { url, etcdUrl, ca, auditLog, tokens: this.#tokens };
  }

  /** How that user reaches the API server. */
  kubeConfig(user = ADMIN.name): TokenConfig {
    const token = this.#tokens[user];
    if (token === undefined) throw new Error(`the control plane has no user ${user}`);
    return new TokenConfig({ server: this.url, ca: this.ca, user, token });
  }

  /** A connection of Berth's own, closed with the control plane. */
  connect(user?: string): Connection {
    return this.connectWith(this.kubeConfig(user));
  }

  /** The same, as whoever that is. */
  connectWith(config: TokenConfig, userAgent = "berth-test"): Connection {
    const connection = connect(config, { clock: createClock(), userAgent });
    this.#connections.push(connection);
    return connection;
  }

  /** Runs kubectl as that user, with a discovery cache of its own. */
  async kubectl(args: readonly string[], options: { stdin?: string; user?: string } = {}): Promise<Ended> {
    const { user = ADMIN.name, stdin = "" } = options;
    const file = join(this.folder, `${user}.kubeconfig`);
    writeFileSync(file, this.kubeConfig(user).exportConfig(), { mode: 0o600 });
    const home = { HOME: this.folder, KUBECONFIG: file, KUBECACHEDIR: join(this.folder, "kubectl") };
    const env = { ...ON_ONE_PROCESSOR, ...home };
    return await run(partOf("kubectl"), args, { env, stdin: { text: stdin } });
  }

  /** Ends what this test has of it, and removes the folder. May be called twice. */
  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
