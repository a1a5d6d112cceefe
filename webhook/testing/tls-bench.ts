// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import type { RequestListener } from "node:http";
import { Agent } from "node:https";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { issueAuthority, issueServingCertificate } from "../certificates/issue.ts";
import { serveTls, type TlsServer, type TlsServerOptions } from "../http/tls-server.ts";
import { type Call, call, type Reply } from "./api-server.ts";

const NAMES = { dnsNames: [], addresses: ["127.0.0.1"] };
const ok: RequestListener = (_request, response) => response.end("ok");

type Authority = Awaited<ReturnType<typeof issueAuthority>>;

/** TLS servers of one authority and clients that trust it, on this host's clock. */
export class TlsBench {
  readonly clock = createClock();
  readonly authority: Authority;
  /** What servers show that are given nothing else. */
  readonly leaf: CertificatePair;
  #servers: TlsServer[] = [];
  #agents: Agent[] = [];

  private constructor(authority: Authority, leaf: CertificatePair) {
    this.authority = authority;
    this.leaf = leaf;
  }

  static async open(): Promise<TlsBench> {
    const clock = createClock();
    const authority = await issueAuthority(clock);
    return new TlsBench(authority, await issueServingCertificate(authority, NAMES, clock));
  }

  /** Ends all servers and clients. */
  async clear(): Promise<void> {
    for (const agent of this.#agents.splice(0)) agent.destroy();
    await Promise.all(this.#servers.splice(0).map((server) => server.close()));
  }

  /** Another certificate for the same servers. */
  async issueLeaf(): Promise<CertificatePair> {
    return await issueServingCertificate(this.authority, NAMES, this.clock);
  }

  /** Answers `ok` unless it is given another app. */
  async serve(changes: Partial<TlsServerOptions> = {}): Promise<TlsServer> {
    const { leaf: certificate, clock } = this;
    const options = { app: ok, host: "127.0.0.1", port: 0, certificate, log: noopLogger, clock };
    const server = await serveTls({ ...options, ...changes });
    this.#servers.push(server);
    return server;
  }

  async get(server: TlsServer, changes: Partial<Call> = {}): Promise<Reply> {
    const { port } = server.address;
    return await call({ port, ca: this.authority.cert, path: "/", method: "GET", ...changes });
  }

  /** A client with one connection, which it keeps. */
  keepAlive(): Agent {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agents.push(agent);
    return agent;
  }
}
