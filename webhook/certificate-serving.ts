// SPDX-License-Identifier: Apache-2.0

import { readFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { BerthError, messageOf } from "../allocator/errors.ts";
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import type { Connection } from "../kube/connection.ts";
import type { Notice } from "../kube/events.ts";
import type { Closers } from "../system/assembly.ts";
import type { Readiness } from "./app.ts";
import { type CertificatePair, readCertificate } from "./certificate-pair.ts";
import type { Terms } from "./certificate-plan.ts";
import { readCertificateFiles, watchAuthorityFile, watchCertificateFiles } from "./certificate-watch.ts";
import { issueAuthority, issueLeaf } from "./certificates.ts";
import type { Issuing } from "./config.ts";
import { startCertificates } from "./controllers/certificates.ts";
import { serveTls, type TlsServer } from "./server.ts";

export interface ServingOptions {
  readonly connection: Connection;
  readonly namespace: string;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The folder of `tls.crt` and `tls.key`, which somebody else fills. */
  readonly certificates: string;
  /** Instead of the folder: Berth is its own authority. */
  readonly issuing?: Issuing;
  /** The file of the authority of clients that may send reviews; absent: anyone may. */
  readonly clientAuthority?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** What the server begins with. */
export interface Opened {
  readonly certificate: CertificatePair;
  /** PEM. */
  readonly clientAuthority: string | undefined;
}

export interface Serving {
  readonly address: TlsServer["address"];
  /** Whether the API server can verify what is served. Files are for whoever brings them to see to. */
  ready(): Readiness;
  /** PEM by what it is for: `serving`, and `authority` where it is Berth's own. */
  certificates(): Readonly<Record<string, string>>;
}

/** So long nothing that is written may be unknown to an API server or a replica; less where lives are short. */
const SETTLE_MS = 60_000;
const SETTLE_SHARE = 1 / 10;

/** @throws BerthError CONFIG_INVALID or CERTIFICATE_INVALID, for what the administrator can mend */
export async function openCertificates(options: ServingOptions): Promise<Opened> {
  const { issuing, clientAuthority, certificates } = options;
  const certificate =
    issuing === undefined
      ? await readPairIn(certificates)
      : await stopgap(termsOf(options, issuing), options);
  if (clientAuthority === undefined) return { certificate, clientAuthority };
  return { certificate, clientAuthority: await readAuthority(clientAuthority) };
}

/** Serves, and reloads whatever changes, until the closers are called. */
export async function serveCertificates(
  options: ServingOptions,
  from: {
    readonly opened: Opened;
    readonly app: RequestListener;
    readonly events: { record(notice: Notice): void };
    readonly closers: Closers;
  },
): Promise<Serving> {
  const { opened, app, closers } = from;
  const { host, port, clock, log } = options;
  const { certificate, clientAuthority } = opened;
  const asked = clientAuthority === undefined ? {} : { clientAuthority };
  const server = await serveTls({ app, host, port, certificate, ...asked, log, clock });
  closers.push(() => server.close());
  followClients(options, { server, opened, closers });
  const { issuing } = options;
  if (issuing === undefined) return followFiles(options, { server, opened, closers });
  const { namespace } = options;
  const kept = startCertificates({
    ...options,
    events: from.events,
    secret: { namespace, name: issuing.secret },
    terms: termsOf(options, issuing),
    reload: (pair) => server.reload(pair),
  });
  closers.push(() => kept.close());
  return { address: server.address, ready: () => kept.ready(), certificates: () => kept.certificates() };
}

interface To {
  readonly server: TlsServer;
  readonly opened: Opened;
  readonly closers: Closers;
}

function followFiles({ certificates, clock, log }: ServingOptions, { server, opened, closers }: To): Serving {
  let serving = opened.certificate;
  const watch = watchCertificateFiles({
    files: filesIn(certificates),
    serving,
    reload: (pair) => {
      server.reload(pair);
      serving = pair;
    },
    ...{ clock, log },
  });
  closers.push(() => watch.close());
  return {
    address: server.address,
    ready: () => ({ ready: true, reason: "" }),
    certificates: () => ({ serving: serving.cert }),
  };
}

function followClients(
  { clientAuthority, clock, log }: ServingOptions,
  { server, opened, closers }: To,
): void {
  if (clientAuthority === undefined || opened.clientAuthority === undefined) return;
  const watch = watchAuthorityFile({
    file: clientAuthority,
    serving: opened.clientAuthority,
    reload: (authority) => server.trustClients(authority),
    ...{ clock, log },
  });
  closers.push(() => watch.close());
}

function termsOf({ namespace }: ServingOptions, { service, leafMs, authorityMs }: Issuing): Terms {
  const name = `${service}.${namespace}.svc`;
  const names = { dnsNames: [name, `${name}.cluster.local`], addresses: [] };
  return { names, leafMs, authorityMs, settleMs: Math.min(SETTLE_MS, leafMs * SETTLE_SHARE) };
}

/** Nobody trusts it: probes, which verify nothing, are answered with it until the Secret was read. */
async function stopgap({ names }: Terms, { clock }: ServingOptions): Promise<CertificatePair> {
  return await issueLeaf(await issueAuthority(clock), names, clock);
}

function filesIn(folder: string): { readonly cert: string; readonly key: string } {
  return { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
}

async function readPairIn(folder: string): Promise<CertificatePair> {
  try {
    return await readCertificateFiles(filesIn(folder));
  } catch (cause) {
    const words = `the certificate cannot be read: ${messageOf(cause)}; mount the webhook's secret at ${folder}, or set BERTH_TLS`;
    throw new BerthError("CONFIG_INVALID", words, { cause, details: { path: folder } });
  }
}

async function readAuthority(file: string): Promise<string> {
  const read = async () => {
    const pem = await readFile(file, "utf8");
    readCertificate(pem);
    return pem;
  };
  try {
    return await read();
  } catch (cause) {
    const words = `BERTH_CLIENT_CA ${file} cannot be used: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause, details: { path: file } });
  }
}
