// SPDX-License-Identifier: Apache-2.0
// The certificate of servers on 127.0.0.1, made once for all files of a run: what makes one takes longer to load than all
// that most files load besides.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClock } from "../../system/clock.ts";

/** The folder of the one that is there; absent where a file is run by itself. */
export const CERTIFICATE_VARIABLE = "BERTH_SERVING_CERTIFICATE";

/** In PEM. */
interface ServingCertificate {
  /** The authority's certificate. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** That of this run, or one that is made. */
export async function servingCertificate(): Promise<ServingCertificate> {
  const kept = process.env[CERTIFICATE_VARIABLE] ?? "";
  if (kept === "") return await makeOne();
  const read = (file: string) => readFileSync(join(kept, file), "utf8");
  return { ca: read("ca.crt"), cert: read("tls.crt"), key: read("tls.key") };
}

/** Writes it as `tls.crt` and `tls.key`; gives the authority's PEM. */
export async function writeCertificate(folder: string): Promise<string> {
  const { ca, cert, key } = await servingCertificate();
  writeFileSync(join(folder, "tls.crt"), cert);
  writeFileSync(join(folder, "tls.key"), key, { mode: 0o600 });
  return ca;
}

/** Makes the one for this run; gives its folder. */
export async function keepCertificate(folder: string): Promise<string> {
  const kept = join(folder, "certificate");
  mkdirSync(kept, { mode: 0o700 });
  writeFileSync(join(kept, "ca.crt"), await writeCertificate(kept));
  return kept;
}

async function makeOne(): Promise<ServingCertificate> {
  const { issueAuthority, issueServingCertificate } = await import("../../webhook/certificates/issue.ts");
  const clock = createClock();
  const authority = await issueAuthority(clock);
  const names = { dnsNames: [], addresses: ["127.0.0.1"] };
  const { cert, key } = await issueServingCertificate(authority, names, clock);
  return { ca: authority.cert, cert, key };
}
