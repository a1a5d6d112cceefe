// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createClock } from "../../system/clock.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { accessOf, podAccess } from "./access.ts";
import { connect } from "./connection.ts";

let folder: string;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-access-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
}

describe("the way to the API server", () => {
  setUp();

  it("of a pod is its service account, whose token may change", async () => {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const { cert, key } = await issueServingCertificate(
      ca,
      { dnsNames: [], addresses: ["127.0.0.1"] },
      clock,
    );
    const server = createServer({ cert, key }, ({ headers }, response) => {
      response.writeHead(headers.authorization === "Bearer two" ? 200 : 401).end('"it is you"');
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    writeFileSync(join(folder, "ca.crt"), ca.cert);
    writeFileSync(join(folder, "token"), "one\n");
    const address = server.address();
    const port = String(typeof address === "object" ? address?.port : 0);
    const connection = connect(podAccess({ host: "127.0.0.1", port }, folder), { clock, userAgent: "test" });
    try {
      const get = () => connection.call({ method: "GET", path: "/" });
      assert.equal((await get()).status, 401);
      writeFileSync(join(folder, "token"), "two\n");
      assert.deepEqual(await get(), { status: 200, body: "it is you" });
    } finally {
      connection.close();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  });

  it("of a pod without a service account is told when it is asked for", async () => {
    const access = podAccess({ host: "fd00::1", port: "443" }, folder);
    assert.equal(access.getCurrentCluster()?.server, "https://[fd00::1]:443");
    const connection = connect(access, { clock: createClock(), userAgent: "test" });
    const asked = connection.call({ method: "GET", path: "/" });
    await assert.rejects(asked, { code: "STORE_UNAVAILABLE", message: /no credentials .*ENOENT.*ca\.crt/ });
    connection.close();
  });

  it("of a kubeconfig that is none is refused", async () => {
    const kubeconfig = join(folder, "none");
    await assert.rejects(accessOf({ kubeconfig }), {
      code: "CONFIG_INVALID",
      message: `BERTH_KUBECONFIG ${kubeconfig} cannot be read: ENOENT: no such file or directory, open '${kubeconfig}'`,
    });
  });
});
