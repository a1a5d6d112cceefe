// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createClock } from "../../../system/clock.ts";
import { SHORT_KEY } from "../../../system/pem/testing/short-key.ts";
import { issueAuthority, issueClient } from "../../../webhook/certificates/issue.ts";
import { messageOf } from "../../base/errors.ts";
import { CertificateFiles, readEndpoints, readPassword } from "./access.ts";

describe("endpoints of etcd", () => {
  it("are URLs with commas between them, each once", () => {
    const text = " https://10.0.0.1:2379, https://etcd.example:2379/ ,https://10.0.0.1:2379,";
    assert.deepEqual(readEndpoints(text), ["https://10.0.0.1:2379", "https://etcd.example:2379"]);
    assert.deepEqual(readEndpoints("http://[fd00::1]:2379"), ["http://[fd00::1]:2379"]);
  });

  for (const text of [
    "",
    " , ",
    "10.0.0.1:2379",
    "ftp://a:1",
    "http://a:2379/v3",
    "http://u:p@a:2379",
    "http://",
  ]) {
    it(`are not ${JSON.stringify(text)}`, () => {
      assert.throws(() => readEndpoints(text), { code: "CONFIG_INVALID" });
    });
  }
});

describe("certificates of etcd on disk", () => {
  let folder: string;
  let certFile: string;
  let keyFile: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "etcd-access-"));
    [certFile, keyFile] = [join(folder, "etcd.pem"), join(folder, "etcd-key.pem")];
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  let times = 0;
  const write = (file: string, text: string) => {
    writeFileSync(file, text);
    utimesSync(file, ++times, times); // two writes in one tick of the file system's clock
  };

  it("are taken up anew once both of a pair have changed, and not while they do not fit", async () => {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const name = { name: "host-a", organization: "berth" };
    const [first, next] = [await issueClient(ca, name, clock), await issueClient(ca, name, clock)];
    write(certFile, first.cert);
    write(keyFile, first.key);
    const told: string[] = [];
    const refused = (error: unknown) => told.push(messageOf(error));
    const files = new CertificateFiles({ endpoints: [], certFile, keyFile });
    assert.equal(files.read().cert?.toString(), first.cert);
    assert.equal(files.hasChanged(refused), false);
    write(certFile, next.cert);
    assert.equal(files.hasChanged(refused), false, "the key is still the old one");
    assert.equal(files.hasChanged(refused), false);
    assert.deepEqual(told, [
      `the certificates for etcd cannot be used: the private key in ${keyFile} is not that of the certificate in ${certFile}; fix that, or name other files`,
    ]);
    write(keyFile, next.key);
    assert.equal(files.hasChanged(refused), true);
    assert.equal(files.hasChanged(refused), false);
    assert.equal(files.read().cert?.toString(), next.cert);
  });

  it("are those before for a new connection while they cannot be used, and are looked for by the others all the same", async () => {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const name = { name: "host-a", organization: "berth" };
    const [first, next] = [await issueClient(ca, name, clock), await issueClient(ca, name, clock)];
    const told: unknown[] = [];
    const refused = (error: unknown) => told.push(error);
    const files = new CertificateFiles({ endpoints: [], certFile, keyFile });
    write(certFile, "");
    write(keyFile, first.key);
    assert.throws(() => files.current(), { code: "CERTIFICATE_INVALID" }, "there are none before");
    write(certFile, first.cert);
    assert.deepEqual(files.current(), first);
    assert.equal(files.hasChanged(refused), false);
    write(certFile, next.cert);
    assert.deepEqual(files.current(), first, "half of a pair");
    rmSync(keyFile);
    assert.deepEqual(files.current(), first);
    assert.equal(files.hasChanged(refused), false);
    assert.equal(told.length, 1);
    write(keyFile, next.key);
    assert.deepEqual(files.current(), next);
    assert.equal(files.hasChanged(refused), true, "connections that stand have the first");
    assert.equal(files.hasChanged(refused), false);
  });

  it("are said to be what they are when they cannot be used, each by its name", async () => {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const { cert, key } = await issueClient(ca, { name: "host-a", organization: "berth" }, clock);
    const caFile = join(folder, "etcd-ca.pem");
    const half = (pem: string) => pem.slice(0, pem.length / 2);
    const whole = { ca: ca.cert, cert, key };
    const rows: readonly [Partial<typeof whole>, string][] = [
      [
        { ca: half(ca.cert) },
        `${caFile} cannot be read: it breaks off before its line -----END CERTIFICATE-----`,
      ],
      [{ ca: "" }, `${caFile} cannot be read: it is empty`],
      [
        { ca: ca.key },
        `${caFile} cannot be read: it has no line -----BEGIN CERTIFICATE-----: it holds a private key`,
      ],
      [
        { ca: ca.cert + half(ca.cert) },
        `${caFile} cannot be read: it has the beginnings of 2 certificates and the ends of 1`,
      ],
      [
        { cert: half(cert) },
        `${certFile} cannot be read: it breaks off before its line -----END CERTIFICATE-----`,
      ],
      [
        { cert: cert + half(ca.cert) },
        `certificate 2 of 2 in ${certFile} cannot be read: it breaks off before its line -----END CERTIFICATE-----`,
      ],
      [{ key: "" }, `${keyFile} cannot be read: it is empty`],
      [{ key: ca.key }, `the private key in ${keyFile} is not that of the certificate in ${certFile}`],
      [
        SHORT_KEY,
        `${certFile} is refused: its key (RSA, 1024 bits) is too short for OpenSSL; make one of at least 2048 bits (RSA), or of the curve P-256`,
      ],
    ];
    const files = new CertificateFiles({ endpoints: [], caFile, certFile, keyFile });
    for (const [wrong, why] of rows) {
      const held = { ...whole, ...wrong };
      write(caFile, held.ca);
      write(certFile, held.cert);
      write(keyFile, held.key);
      const message = `the certificates for etcd cannot be used: ${why}; fix that, or name other files`;
      assert.throws(() => files.read(), { code: "CERTIFICATE_INVALID", message });
    }
    rmSync(keyFile);
    mkdirSync(keyFile);
    assert.throws(() => files.read(), { message: new RegExp(`: ${keyFile} cannot be read: EISDIR`) });
    rmSync(keyFile, { recursive: true });
    write(caFile, ca.cert);
    write(certFile, cert);
    write(keyFile, key);
    assert.deepEqual(files.read(), { ...whole, ca: [ca.cert] });
  });

  it("have every authority of a file, also one that does not begin on a line of its own", async () => {
    const clock = createClock();
    const [one, two] = [await issueAuthority(clock), await issueAuthority(clock)];
    const caFile = join(folder, "etcd-ca.pem");
    const files = new CertificateFiles({ endpoints: [], caFile });
    for (const between of ["", "\n", "\n  ", "\r\n# the second one\r\n"]) {
      write(caFile, one.cert.trimEnd() + between + two.cert);
      assert.deepEqual(files.read(), { ca: [one.cert, two.cert] }, JSON.stringify(between));
    }
  });

  it("are named when they are not there", () => {
    const gone = join(folder, "gone.pem");
    const files = new CertificateFiles({ endpoints: [], caFile: gone });
    assert.throws(() => files.read(), { code: "CERTIFICATE_INVALID", message: new RegExp(gone) });
    assert.throws(() => new CertificateFiles({ endpoints: [], certFile: gone }), { code: "CONFIG_INVALID" });
    assert.throws(() => readPassword(gone), { code: "CONFIG_INVALID", message: new RegExp(gone) });
  });
});
