// SPDX-License-Identifier: Apache-2.0
// Clients with certificates, of a TLS server of their own.
import "../certificates/reflect-metadata.ts";
import { afterEach, before } from "node:test";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { type ClientName, issueAuthority, issueClient } from "../certificates/issue.ts";
import { TlsBench } from "./tls-bench.ts";

export let bench: TlsBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
export function setUp(): void {
  before(async () => {
    bench = await TlsBench.open();
  });
  afterEach(() => bench.clear());
}

export const API_SERVER: ClientName = { name: "kube-apiserver", organization: "berth.dev:reviewers" };

/** A client's certificate of an authority of its own, whose certificate comes with it. */
export async function clientOf(who: ClientName = API_SERVER, authority?: CertificatePair) {
  const signer = authority ?? (await issueAuthority(bench.clock));
  return { ...(await issueClient(signer, who, bench.clock)), authority: signer };
}
