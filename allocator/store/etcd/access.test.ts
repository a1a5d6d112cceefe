// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createClock } from "../../../system/clock.ts";
import { issueAuthority, issueClient } from "../../../webhook/certificates/issue.ts";
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
    const files = new CertificateFiles({ endpoints: [], certFile, keyFile });
    assert.equal(files.read().cert?.toString(), first.cert);
    assert.equal(files.hasChanged(), false);
    write(certFile, next.cert);
    assert.equal(files.hasChanged(), false, "the key is still the old one");
    write(keyFile, next.key);
    assert.equal(files.hasChanged(), true);
    assert.equal(files.hasChanged(), false);
    assert.equal(files.read().cert?.toString(), next.cert);
  });

  it("are named when they cannot be used", () => {
    const gone = join(folder, "gone.pem");
    const files = new CertificateFiles({ endpoints: [], caFile: gone });
    assert.throws(() => files.read(), { code: "CERTIFICATE_INVALID", message: new RegExp(gone) });
    assert.throws(() => new CertificateFiles({ endpoints: [], certFile: gone }), { code: "CONFIG_INVALID" });
    assert.throws(() => readPassword(gone), { code: "CONFIG_INVALID", message: new RegExp(gone) });
  });
});
