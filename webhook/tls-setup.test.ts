// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Clock, type LogFields, noopLogger } from "../allocator/base/ports.ts";
import { ScriptedConnection } from "../kube/testing/scripted-connection.ts";
import { AnchoredClock } from "../system/anchored-clock.ts";
import { createClock } from "../system/clock.ts";
import type { CertificatePair } from "../system/pem/pair.ts";
import { SHORT_KEY } from "../system/pem/testing/short-key.ts";
import { createRandom } from "../system/random.ts";
import type { CleanupStack } from "../system/shutdown.ts";
import { ManualClock } from "../system/testing/manual-clock.ts";
import { issueAuthority, issueServingCertificate } from "./certificates/issue.ts";
import { call } from "./testing/api-server.ts";
import { openCertificates, serveCertificates } from "./tls-setup.ts";

const NAMES = { dnsNames: [], addresses: ["127.0.0.1"] };

const NEXT =
  "Berth serves as soon as tls.crt and tls.key there are whole, belong together and have not expired";

describe("certificates from files", () => {
  let folder = "";
  let clock: ManualClock;
  let closers: CleanupStack = [];
  const lines: string[] = [];
  const errors: string[] = [];
  const tell = (message: string, { error }: LogFields = {}) => {
    lines.push(message);
    if (error instanceof Error) errors.push(error.message);
  };
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-serving-"));
    clock = new ManualClock(createClock().now());
    lines.splice(0);
    errors.splice(0);
  });
  afterEach(async () => {
    for (const close of closers.reverse()) await close();
    closers = [];
    await rm(folder, { recursive: true });
  });

  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  const authority = issueAuthority(createClock());
  const leaf = async () => await issueServingCertificate(await authority, NAMES, createClock());

  async function serve(by: Clock = clock) {
    const options = {
      ...{ connection: new ScriptedConnection(), namespace: "berth-system", certificates: folder },
      ...{ host: "127.0.0.1", port: 0, clock: by, random: createRandom() },
      log: { ...noopLogger, warn: tell, error: tell },
    };
    const opened = await openCertificates(options);
    const serving = await serveCertificates(options, {
      opened,
      app: (_request, response) => response.end("ok"),
      closers,
    });
    const { port } = serving.address;
    const get = async () => {
      const { cert: ca } = await authority;
      return (await call({ port, ca, path: "/", method: "GET", body: "", agent: false })).text;
    };
    return { serving, get };
  }

  /** Lets the watch look once, at least. */
  async function look(): Promise<void> {
    clock.advance(5_000);
    await new Promise((tick) => setTimeout(tick, 5));
  }

  it("are waited for, not ready, while certificate and key do not belong together", async () => {
    const [old, next] = [await leaf(), await leaf()];
    await write("tls.crt", next.cert);
    await write("tls.key", old.key);
    const { serving, get } = await serve();
    assert.deepEqual(serving.ready(), {
      ready: false,
      reason: `the certificate in ${folder} cannot be used: the private key in ${join(folder, "tls.key")} is not that of the certificate in ${join(folder, "tls.crt")}; ${NEXT}`,
    });
    assert.deepEqual(serving.certificates(), {});
    assert.deepEqual(lines, ["certificate files hold no pair that can be served; waiting for one"]);
    await assert.rejects(
      get(),
      /self-signed|unable to verify|issuer/i,
      "nobody trusts what it has meanwhile",
    );
    await write("tls.key", next.key);
    while (!serving.ready().ready) {
      clock.advance(5_000);
      await new Promise((tick) => setTimeout(tick, 5));
    }
    assert.deepEqual(serving.certificates(), { serving: next.cert });
    assert.equal(await get(), "ok");
  });

  it("are said to be half written in plain words, each by its name, at the start and when they change", async () => {
    const { cert, key } = await leaf();
    const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    await write("tls.crt", cert.slice(0, cert.length / 2));
    await write("tls.key", "");
    const { serving, get } = await serve();
    const until = async (isSo: () => boolean) => {
      while (!isSo()) {
        clock.advance(5_000);
        await new Promise((tick) => setTimeout(tick, 5));
      }
    };
    const unfit = (words: string) =>
      until(
        () => serving.ready().reason === `the certificate in ${folder} cannot be used: ${words}; ${NEXT}`,
      );
    await unfit(`${certFile} cannot be read: it breaks off before its line -----END CERTIFICATE-----`);
    await write("tls.crt", cert);
    await unfit(`${keyFile} cannot be read: it is empty`);
    await rm(keyFile);
    await unfit(`ENOENT: no such file or directory, open '${keyFile}'`);
    await write("tls.key", "");
    await unfit(`${keyFile} cannot be read: it is empty`);
    await write("tls.key", key.slice(0, key.length / 2));
    await unfit(`${keyFile} cannot be read: it breaks off before its line -----END PRIVATE KEY-----`);
    await write("tls.key", key);
    await until(() => serving.ready().ready);
    await write("tls.key", cert);
    const held = "it has no line -----BEGIN PRIVATE KEY-----: it holds a certificate";
    await until(() => errors.includes(`${keyFile} cannot be read: ${held}`));
    assert.equal(serving.ready().ready, true);
    assert.equal(await get(), "ok", "the old one stays");
    for (const error of errors) assert.doesNotMatch(error, /routines::|error:[0-9A-F]{8}/);
  });

  it("are waited for while what follows the certificate is half written, and refused when that is so later", async () => {
    const { cert, key } = await leaf();
    const { cert: other } = await authority;
    const certFile = join(folder, "tls.crt");
    const half = cert + other.slice(0, other.length / 2);
    const broken = `certificate 2 of 2 in ${certFile} cannot be read: it breaks off before its line -----END CERTIFICATE-----`;
    await write("tls.crt", half);
    await write("tls.key", key);
    const { serving, get } = await serve();
    assert.deepEqual(serving.ready(), {
      ready: false,
      reason: `the certificate in ${folder} cannot be used: ${broken}; ${NEXT}`,
    });
    await look();
    await look();
    assert.deepEqual(
      lines,
      ["certificate files hold no pair that can be served; waiting for one"],
      "nothing changed",
    );
    await write("tls.crt", cert + other);
    while (!serving.ready().ready) await look();
    await write("tls.crt", half);
    while (errors.length < 2) await look();
    assert.deepEqual(errors, [broken, broken]);
    assert.equal(serving.ready().ready, true);
    assert.equal(await get(), "ok", "the old one stays");
  });

  it("are waited for when OpenSSL takes no such key, and refused when they are renewed with one", async () => {
    const { cert, key } = await leaf();
    const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    const put = async (pair: CertificatePair) => {
      await write("tls.crt", pair.cert);
      await write("tls.key", pair.key);
    };
    await put(SHORT_KEY);
    const { serving, get } = await serve();
    const short = `${certFile} is refused: its key (RSA, 1024 bits) is too short for OpenSSL; make one of at least 2048 bits (RSA), or of the curve P-256`;
    assert.deepEqual(serving.ready(), {
      ready: false,
      reason: `the certificate in ${folder} cannot be used: ${short}; ${NEXT}`,
    });
    await write("tls.key", key);
    while (lines.length < 2) await look();
    await rm(keyFile);
    while (lines.length < 3) await look();
    await put({ cert, key });
    while (!serving.ready().ready) await look();
    await put(SHORT_KEY);
    while (!errors.slice(1).includes(short)) await look();
    await rm(keyFile);
    while (lines.at(-1) !== "certificate files cannot be read; the certificate stays") await look();
    assert.equal(serving.ready().ready, true);
    assert.deepEqual(serving.certificates(), { serving: cert });
    assert.equal(await get(), "ok", "the old one stays");
    const [first, second, third] = lines;
    assert.deepEqual(
      [first, second, third],
      [
        "certificate files hold no pair that can be served; waiting for one",
        "new certificate files are refused, too; waiting for others",
        "certificate files cannot be read; waiting for them",
      ],
    );
    assert.ok(lines.includes("new certificate files are refused; the certificate stays"));
  });

  it("are waited for, not ready, when they have expired", async () => {
    const old = await leaf();
    await write("tls.crt", old.cert);
    await write("tls.key", old.key);
    clock.advance(400 * 86_400_000);
    const { serving } = await serve();
    const { ready, reason } = serving.ready();
    assert.equal(ready, false);
    assert.match(
      reason,
      /^the certificate in .* cannot be used: the certificate expired on .*; renew it; Berth serves as soon as /,
    );
    assert.deepEqual(serving.certificates(), {});
    assert.deepEqual(lines, ["the certificate has expired; waiting for another one"]);
    const next = await issueServingCertificate(await authority, NAMES, clock);
    await write("tls.crt", next.cert);
    await write("tls.key", next.key);
    while (!serving.ready().ready) {
      clock.advance(5_000);
      await new Promise((tick) => setTimeout(tick, 5));
    }
    assert.deepEqual(serving.certificates(), { serving: next.cert });
  });

  it("are served once the API server's time is known, by which they have not expired", async () => {
    const { cert, key } = await leaf();
    await write("tls.crt", cert);
    await write("tls.key", key);
    clock.advance(400 * 86_400_000);
    const server = new AnchoredClock(clock);
    const { serving, get } = await serve(server);
    assert.equal(serving.ready().ready, false);
    server.observe(createClock().now());
    while (!serving.ready().ready) {
      clock.advance(5_000);
      await new Promise((tick) => setTimeout(tick, 5));
    }
    assert.deepEqual(serving.certificates(), { serving: cert });
    assert.equal(await get(), "ok");
    assert.deepEqual(lines, ["the certificate has expired; waiting for another one"]);
  });

  it("are served at once when they are a pair, and said to be missing when they are", async () => {
    await assert.rejects(serve(), {
      code: "CONFIG_INVALID",
      message: /the certificate cannot be read: ENOENT/,
    });
    const { cert, key } = await leaf();
    await write("tls.crt", cert);
    await write("tls.key", key);
    const { serving, get } = await serve();
    assert.equal(serving.ready().ready, true);
    assert.equal(await get(), "ok");
    assert.deepEqual(lines, []);
  });
});
