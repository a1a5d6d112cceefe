// SPDX-License-Identifier: Apache-2.0
// What docs/hardening.md tells an administrator to type is what the webhook takes.
import "../../webhook/certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { TlsBench } from "../../webhook/testing/tls-bench.ts";
import { run } from "../support/process.ts";

const HARDENING = readFileSync(join(import.meta.dirname, "../../docs/hardening.md"), "utf8");
const env = { PATH: "/usr/bin:/bin" };

const { rc } = await run("openssl", ["version"], { env }).catch(() => ({ rc: 1 }));

describe("docs/hardening.md: a certificate for the API server", {
  skip: rc === 0 ? false : "no openssl",
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-hardening-"));
  let bench: TlsBench;
  before(async () => {
    bench = await TlsBench.open();
    const commands =
      /<!-- certificate -->\n```sh\n(.*?)```\n/s.exec(HARDENING)?.[1] ?? assert.fail("no commands");
    await must(commands);
  });
  afterEach(async () => await bench.clear());
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function must(script: string): Promise<void> {
    const { rc, stderr } = await run("bash", ["-euc", `cd ${folder}; ${script}`], { env });
    assert.equal(rc, 0, stderr);
  }

  const file = (name: string) => readFileSync(join(folder, name), "utf8");

  async function post(certificate: { readonly cert: string; readonly key: string }) {
    const server = await bench.serve({ clientAuthority: file("reviewers-ca.crt") });
    return await bench.get(server, { method: "POST", certificate });
  }

  it("made by its commands, lets reviews in", async () => {
    const { status, text } = await post({ cert: file("reviewer.crt"), key: file("reviewer.key") });
    assert.deepEqual([status, text], [200, "ok"]);
  });

  it("does not let in another name that the same authority has signed", async () => {
    await must(
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /O=developers/CN=evil-developer -keyout evil.key -out evil.csr; " +
        "openssl x509 -req -in evil.csr -CA reviewers-ca.crt -CAkey reviewers-ca.key -CAcreateserial -days 1 -extfile reviewer.ext -out evil.crt",
    );
    const { status, text } = await post({ cert: file("evil.crt"), key: file("evil.key") });
    assert.equal(status, 403);
    assert.match(
      text,
      /^berth takes no reviews from a client certificate with CN=evil-developer and O=developers/,
    );
  });

  it("tells a stranger what it says that he is told", async () => {
    const server = await bench.serve({ clientAuthority: file("reviewers-ca.crt") });
    const { status, text } = await bench.get(server, { method: "POST" });
    const [, words = "nothing"] =
      /`(403 berth takes reviews only from a client with a certificate)`/.exec(HARDENING) ?? [];
    assert.ok(`${status} ${text}`.startsWith(words), text);
  });
});
