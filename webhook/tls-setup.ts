// SPDX-License-Identifier: Apache-2.0

import { readFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { BerthError, messageOf } from "../allocator/base/errors.ts";
import type { Clock, Logger, Random, Readiness } from "../allocator/base/ports.ts";
import type { Connection } from "../kube/api/connection.ts";
import type { ListeningPlace } from "../system/listening.ts";
import { type CertificatePair, readWholePair } from "../system/pem/pair.ts";
import type { CleanupStack } from "../system/shutdown.ts";
import { readAuthorities } from "./certificates/ca-bundle.ts";
import { startCertificates } from "./certificates/controller.ts";
import {
  readCertificateFiles,
  watchAuthorityFile,
  watchCertificateFiles,
} from "./certificates/file-watch.ts";
import { issueAuthority, issueServingCertificate, type ServerNames } from "./certificates/issue.ts";
import { isServable, readServingPair } from "./certificates/serving-pair.ts";
import { namesOf } from "./certificates/terms.ts";
import type { Issued } from "./config.ts";
import { TRUSTED_CLIENTS, type TrustedClients } from "./http/client-check.ts";
import { serveTls, type TlsServer } from "./http/tls-server.ts";

interface ServingOptions extends ListeningPlace {
  readonly connection: Connection;
  readonly namespace: string;
  /** The folder of `tls.crt` and `tls.key`, which somebody else fills. */
  readonly certificates: string;
  /** Instead of the folder: the Secret that Berth's issuer fills. */
  readonly issued?: Issued;
  /** The file of the authority of clients that may send reviews; absent: anyone may. */
  readonly clientAuthority?: string;
  /** Which clients of that authority; `TRUSTED_CLIENTS` if absent. */
  readonly trusted?: TrustedClients;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** What the server begins with. */
interface InitialCertificates {
  readonly certificate: CertificatePair;
  /** PEM. */
  readonly clientAuthority: string | undefined;
  /** The files hold no pair yet, because somebody writes them one after the other, or one that has expired: what they hold, and why that is none. */
  readonly unfit?: { readonly pair: CertificatePair; readonly why: string };
}

export interface TlsHandle {
  readonly address: TlsServer["address"];
  /** Whether the API server can verify what is served. Files are for whoever brings them to see to. */
  ready(): Readiness;
  /** PEM by what it is for: `serving`, and `authority` where it is Berth's own. */
  certificates(): Readonly<Record<string, string>>;
}

/** @throws BerthError CONFIG_INVALID or CERTIFICATE_INVALID, for what the administrator can fix */
export async function openCertificates(options: ServingOptions): Promise<InitialCertificates> {
  const { namespace, issued, clientAuthority } = options;
  const opened =
    issued === undefined
      ? await openFiles(options)
      : { certificate: await temporaryCertificate(namesOf(namespace, issued.service), options.clock) };
  if (clientAuthority === undefined) return { ...opened, clientAuthority };
  return { ...opened, clientAuthority: await readAuthority(clientAuthority) };
}

const NOBODY: ServerNames = { dnsNames: ["localhost"], addresses: [] };

async function openFiles({
  certificates,
  clock,
  log,
}: ServingOptions): Promise<Omit<InitialCertificates, "clientAuthority">> {
  const pair = await readPairIn(certificates);
  try {
    readWholePair(pair, filesIn(certificates));
    return { certificate: pair };
  } catch (error) {
    log.warn("certificate files hold no pair that can be served; waiting for one", {
      path: certificates,
      error,
    });
    return await unfitFor(pair, error, { certificates, clock });
  }
}

async function unfitFor(
  pair: CertificatePair,
  error: unknown,
  { certificates, clock }: Pick<ServingOptions, "certificates" | "clock">,
): Promise<InitialCertificates & Required<Pick<InitialCertificates, "unfit">>> {
  const why = whyUnfit(certificates, error);
  const certificate = await temporaryCertificate(NOBODY, clock);
  return { certificate, clientAuthority: undefined, unfit: { pair, why } };
}

/** What is served once it is there is looked for all the time: nobody needs to start the process again. */
function whyUnfit(folder: string, error: unknown): string {
  const next =
    "Berth serves as soon as tls.crt and tls.key there are whole, belong together and have not expired";
  return `the certificate in ${folder} cannot be used: ${messageOf(error)}; ${next}`;
}

/**
 * One that has ended is waited for like one that is none: the controllers of this process need no certificate. The API server's time may not be known yet,
 * and a host's clock that is ahead calls a good one expired: `followFiles` looks again.
 */
async function withoutExpired(
  options: ServingOptions,
  opened: InitialCertificates,
): Promise<InitialCertificates> {
  const { certificates: path, clock, log, issued } = options;
  const { certificate, clientAuthority, unfit } = opened;
  if (issued !== undefined || unfit !== undefined) return opened;
  try {
    readServingPair(certificate, clock.now());
    return opened;
  } catch (error) {
    log.error("the certificate has expired; waiting for another one", { path, error });
    return { ...(await unfitFor(certificate, error, options)), clientAuthority };
  }
}

/** Serves, and reloads whatever changes, until the closers are called. */
export async function serveCertificates(
  options: ServingOptions,
  from: {
    readonly opened: InitialCertificates;
    readonly app: RequestListener;
    readonly closers: CleanupStack;
  },
): Promise<TlsHandle> {
  const { app, closers } = from;
  const opened = await withoutExpired(options, from.opened);
  const { host, port, clock, log } = options;
  const { certificate, clientAuthority } = opened;
  const { trusted = TRUSTED_CLIENTS } = options;
  const asked = clientAuthority === undefined ? {} : { clientAuthority, trusted };
  const server = await serveTls({ app, host, port, certificate, ...asked, log, clock });
  closers.push(() => server.close());
  followClients(options, { server, opened, closers });
  const { issued } = options;
  if (issued === undefined) return followFiles(options, { server, opened, closers });
  const { namespace } = options;
  const kept = startCertificates({
    ...options,
    secret: { namespace, name: issued.secret },
    names: namesOf(namespace, issued.service),
    reload: (pair) => server.reload(pair),
  });
  closers.push(() => kept.close());
  return { address: server.address, ready: () => kept.ready(), certificates: () => kept.certificates() };
}

interface To {
  readonly server: TlsServer;
  readonly opened: InitialCertificates;
  readonly closers: CleanupStack;
}

function followFiles(
  { certificates, clock, log }: ServingOptions,
  { server, opened, closers }: To,
): TlsHandle {
  const { unfit, certificate } = opened;
  const files = filesIn(certificates);
  let serving = unfit === undefined ? certificate : undefined;
  let why = unfit?.why ?? "";
  let unread: string | undefined;
  const watch = watchCertificateFiles({
    files,
    serving: unfit?.pair ?? certificate,
    reload: (pair) => {
      try {
        readWholePair(pair, files); // says which of the two it is
        server.reload(pair);
      } catch (error) {
        why = whyUnfit(certificates, error);
        throw error;
      }
      serving = pair;
    },
    isServed: () => serving !== undefined,
    isDue: (pair) => serving === undefined && isServable(pair, clock.now()),
    unread: (error) => {
      unread = error === undefined ? undefined : whyUnfit(certificates, error);
    },
    ...{ clock, log },
  });
  closers.push(() => watch.close());
  return {
    address: server.address,
    ready: () => (serving === undefined ? { ready: false, reason: unread ?? why } : READY),
    certificates: (): Readonly<Record<string, string>> =>
      serving === undefined ? {} : { serving: serving.cert },
  };
}

const READY: Readiness = { ready: true, reason: "" };

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

/** Nobody trusts it: probes, which verify nothing, are answered with it until the Secret was read. */
async function temporaryCertificate(names: ServerNames, clock: Clock): Promise<CertificatePair> {
  return await issueServingCertificate(await issueAuthority(clock), names, clock);
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
    readAuthorities(pem);
    return pem;
  };
  try {
    return await read();
  } catch (cause) {
    const words = `BERTH_CLIENT_CA ${file} cannot be used: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause, details: { path: file } });
  }
}
