// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type LogFields, type Logger, noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { type CertificatePair, readCertificate } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { serveTls, type TlsServer } from "../http/tls-server.ts";
import { call } from "../testing/api-server.ts";
import {
  type CertificateWatch,
  readCertificateFiles,
  watchAuthorityFile,
  watchCertificateFiles,
} from "./file-watch.ts";
import { issueAuthority, issueServingCertificate } from "./issue.ts";

const NAMES = { dnsNames: [], addresses: ["127.0.0.1"] };
const real = createClock();
const authority = await issueAuthority(real);
const issue = () => issueServingCertificate(authority, NAMES, real);
const serialOf = ({ cert }: CertificatePair) => readCertificate(cert).serialNumber;

describe("certificate watch", () => {
  let folder = "";
  let version = 0;
  let server: TlsServer;
  let watch: CertificateWatch;
  let clock = new ManualClock();
  let logged: { level: string; message: string }[] = [];
  let serving: CertificatePair;

  /** As kubelet mounts a Secret: `tls.crt` -> `..data/tls.crt`, `..data` -> a folder of the version, swapped at once. */
  async function mount(pair: CertificatePair): Promise<void> {
    const name = `..version-${++version}`;
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, "tls.crt"), pair.cert);
    await writeFile(join(folder, name, "tls.key"), pair.key);
    await symlink(name, join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  }

  /** Lets the watch look once, and waits until it sleeps again. */
  async function look(): Promise<void> {
    while (clock.sleeping === 0) await real.sleep(1);
    clock.advance(5000);
    while (clock.sleeping === 0) await real.sleep(1);
  }

  const shown = async () => (await call({ port: server.address.port, ca: authority.cert, path: "/" })).serial;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-watch-"));
    clock = new ManualClock(real.now());
    logged = [];
    const at = (level: string) => (message: string, _fields?: LogFields) => logged.push({ level, message });
    const log: Logger = { ...noopLogger, info: at("info"), warn: at("warn"), error: at("error") };
    await mount(await issue());
    for (const name of ["tls.crt", "tls.key"]) await symlink(join("..data", name), join(folder, name));
    const files = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
    serving = await readCertificateFiles(files);
    server = await serveTls({
      app: (_request, response) => response.end(),
      host: "127.0.0.1",
      port: 0,
      certificate: serving,
      log: noopLogger,
      clock: real,
    });
    watch = watchCertificateFiles({ files, serving, reload: server.reload, clock, log });
  });
  afterEach(async () => {
    await watch.close();
    await server.close();
    await rm(folder, { recursive: true });
  });

  it("does nothing while nothing changes", async () => {
    await look();
    await look();
    assert.deepEqual(logged, []);
    assert.equal(await shown(), serialOf(serving));
  });

  it("serves what kubelet swaps in, as often as it does", async () => {
    for (let i = 0; i < 3; i++) {
      const next = await issue();
      await mount(next);
      await look();
      assert.equal(await shown(), serialOf(next));
    }
    assert.deepEqual(
      logged.map(({ message }) => message),
      Array(3).fill("certificate reloaded"),
    );
  });

  it("waits for the second half of a change that comes in two", async () => {
    const next = await issue();
    await writeFile(join(folder, "..data", "tls.crt"), next.cert);
    await look();
    await look();
    assert.equal(await shown(), serialOf(serving));
    assert.deepEqual(logged, [
      { level: "error", message: "new certificate files are refused; the certificate stays" },
    ]);
    await writeFile(join(folder, "..data", "tls.key"), next.key);
    await look();
    assert.equal(await shown(), serialOf(next));
  });

  it("keeps the certificate while files are missing, says so once, and goes on when they are back", async () => {
    await rm(join(folder, "..data"));
    await look();
    await look();
    assert.deepEqual(logged, [
      { level: "warn", message: "certificate files cannot be read; the certificate stays" },
    ]);
    assert.equal(await shown(), serialOf(serving));
    const next = await issue();
    await mount(next);
    await look();
    assert.equal(await shown(), serialOf(next));
  });

  it("sees a change that came before its first look", async () => {
    const next = await issue();
    await mount(next);
    await look();
    assert.equal(await shown(), serialOf(next));
  });

  it("stops when it is closed", async () => {
    while (clock.sleeping === 0) await real.sleep(1);
    await watch.close();
    assert.equal(clock.sleeping, 0);
    await watch.close();
  });

  it("follows the authority of clients in the same way", async () => {
    const file = join(folder, "clients.crt");
    const taken: string[] = [];
    await writeFile(file, "first");
    const at = (level: string) => (message: string) => logged.push({ level, message });
    const clients = watchAuthorityFile({
      ...{ file, serving: "first", clock, everyMs: 5000 },
      reload: (text) => {
        if (text === "nonsense") throw new Error("no certificate");
        taken.push(text);
      },
      log: { ...noopLogger, info: at("info"), warn: at("warn"), error: at("error") },
    });
    const sleepers = async () => {
      while (clock.sleeping < 2) await real.sleep(1);
    };
    try {
      for (const text of ["second", "nonsense", "third"]) {
        await sleepers();
        await writeFile(file, text);
        clock.advance(5000);
      }
      await sleepers();
      assert.deepEqual(taken, ["second", "third"]);
      assert.deepEqual(
        logged.map(({ level }) => level),
        ["info", "error", "info"],
      );
    } finally {
      await clients.close();
    }
  });
});
