// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Agent, createServer, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createClock } from "../../system/clock.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventually } from "../../test/support/eventually.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { accessOf, podAccess } from "./access.ts";
import { connect } from "./connection.ts";
import type { ApiAccess } from "./credentials.ts";

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

  /** A server that knows the token "two", and how it is asked. */
  async function served(use: (server: { readonly port: string; readonly ca: string }) => Promise<void>) {
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
    const address = server.address();
    const port = String(typeof address === "object" ? address?.port : 0);
    try {
      await use({ port, ca: ca.cert });
    } finally {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  }

  /** That of one call after the other, between which something is done. */
  async function statuses(access: ApiAccess, between: readonly (() => void)[]): Promise<number[]> {
    const connection = connect(access, { clock: createClock(), userAgent: "test" });
    try {
      const get = async () => (await connection.call({ method: "GET", path: "/" })).status;
      const all = [await get()];
      for (const act of between) {
        act();
        all.push(await get());
      }
      return all;
    } finally {
      connection.close();
    }
  }

  it("of a pod is its service account, whose token may change", async () => {
    await served(async ({ port, ca }) => {
      writeFileSync(join(folder, "ca.crt"), ca);
      writeFileSync(join(folder, "token"), "one\n");
      const access = podAccess({ host: "127.0.0.1", port }, folder);
      const renew = () => writeFileSync(join(folder, "token"), "two\n");
      assert.deepEqual(await statuses(access, [renew]), [401, 200]);
    });
  });

  const kubeconfigOf = ({ port, ca }: { port: string; ca: string }, user: object) =>
    JSON.stringify({
      clusters: [
        {
          name: "c",
          cluster: {
            server: `https://127.0.0.1:${port}`,
            "certificate-authority-data": Buffer.from(ca).toString("base64"),
          },
        },
      ],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    });

  it("of a kubeconfig is a token in a file, which may change, and counts before a token beside it", async () => {
    await served(async (server) => {
      const kubeconfig = join(folder, "kubeconfig");
      writeFileSync(kubeconfig, kubeconfigOf(server, { tokenFile: "token", token: "three" }));
      writeFileSync(join(folder, "token"), "one\n");
      const renew = () => writeFileSync(join(folder, "token"), "two\n");
      assert.deepEqual(await statuses(await accessOf({ kubeconfig }), [renew]), [401, 200]);
    });
  });

  it("of a kubeconfig is the token beside that of a file which cannot be read", async () => {
    await served(async (server) => {
      const kubeconfig = join(folder, "kubeconfig");
      writeFileSync(kubeconfig, kubeconfigOf(server, { tokenFile: "nowhere", token: "two" }));
      assert.deepEqual(await statuses(await accessOf({ kubeconfig }), []), [200]);
    });
  });

  it("of a kubeconfig is what it says now, and what it said before while it is half written", async () => {
    await served(async (server) => {
      const kubeconfig = join(folder, "kubeconfig");
      const write = (user: object) => writeFileSync(kubeconfig, kubeconfigOf(server, user));
      write({ token: "one" });
      const access = await accessOf({ kubeconfig });
      assert.deepEqual(await statuses(access, [() => write({ token: "two" })]), [401, 200]);
      const whole = kubeconfigOf(server, { token: "one" });
      const halfAKey = {
        "client-certificate-data": "",
        "client-key-data": "LS0tLS1CRUdJTiBQUklWQVRF",
        token: "two",
      };
      const acts = [
        () => writeFileSync(kubeconfig, whole.slice(0, -40)),
        () => writeFileSync(kubeconfig, "{}"),
        () => write({}), // as YAML that ends where the user's credentials begin
        () => write(halfAKey),
        ...[0, 40, 200, server.ca.length * 1.5].map((end) => () => {
          const ca = (server.ca + server.ca).slice(0, end);
          writeFileSync(kubeconfig, kubeconfigOf({ ...server, ca }, { token: "two" }));
        }),
        () => rmSync(kubeconfig),
      ];
      for (const act of acts) {
        act();
        assert.deepEqual(await statuses(access, []), [200]);
      }
    });
  });

  it("of a kubeconfig is that of the server of its start, whichever context is the current one by now", async () => {
    await served(async (server) => {
      const kubeconfig = join(folder, "kubeconfig");
      const write = (token: string, current: string) => {
        const config = JSON.parse(kubeconfigOf(server, { token }));
        config.clusters.push({ name: "d", cluster: { server: "https://127.0.0.1:1" } });
        config.users.push({ name: "v", user: { token: "of another server" } });
        config.contexts.push({ name: "y", context: { cluster: "d", user: "v" } });
        writeFileSync(kubeconfig, JSON.stringify({ ...config, "current-context": current }));
      };
      write("one", "x");
      const access = await accessOf({ kubeconfig });
      assert.deepEqual(await statuses(access, [() => write("two", "y")]), [401, 200]);
      const options: RequestOptions = {};
      await access.applyToHTTPSOptions(options);
      assert.deepEqual(options.headers, { Authorization: "Bearer two" });
    });
  });

  it("of a kubeconfig with a proxy has the client certificate that is in its file now", async () => {
    const kubeconfig = join(folder, "kubeconfig");
    const user = { "client-certificate": "client.crt", "client-key": "client.key" };
    const config = JSON.parse(kubeconfigOf({ port: "1", ca: "ca" }, user));
    config.clusters[0].cluster["proxy-url"] = "http://127.0.0.1:3128";
    writeFileSync(kubeconfig, JSON.stringify(config));
    writeFileSync(join(folder, "client.key"), "key");
    const access = await accessOf({ kubeconfig });
    for (const cert of ["one", "two"]) {
      writeFileSync(join(folder, "client.crt"), cert);
      const options: RequestOptions = {};
      await access.applyToHTTPSOptions(options);
      const { agent } = options as { agent: Agent };
      assert.equal(String(agent.options.cert), cert);
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

  it("of a kubeconfig is a plugin, which is ended after a minute", {
    timeout: 60_000,
  }, async () => {
    const [kubeconfig, command, pidFile] = ["kubeconfig", "plugin", "pid"].map((name) => join(folder, name));
    assert.ok(kubeconfig !== undefined && command !== undefined && pidFile !== undefined);
    writeFileSync(
      command,
      `#!/bin/sh\necho $$ > ${pidFile}.new\nmv ${pidFile}.new ${pidFile}\nexec sleep 3600\n`,
    );
    chmodSync(command, 0o755);
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command, interactiveMode: "Never" };
    writeFileSync(kubeconfig, kubeconfigOf({ port: "1", ca: "ca" }, { exec }));
    const clock = new ManualClock();
    const connection = connect(await accessOf({ kubeconfig }), { clock, userAgent: "test" });
    const call = connection.call({ method: "GET", path: "/", timeoutMs: 90_000 });
    const pid = await eventually("the plugin runs", () =>
      existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : undefined,
    );
    clock.advance(60_000);
    const words = `the plugin ${command} of the kubeconfig's user "u" did not end in time, and was ended (process ${pid}); `;
    await assert.rejects(call, {
      code: "TIMED_OUT",
      message: `no credentials for the API server at https://127.0.0.1:1: ${words}run it by hand to see what it waits for`,
    });
    await eventually("it has ended", () => (existsSync(`/proc/${pid}`) ? undefined : true));
    connection.close();
  });

  it("of a kubeconfig is a plugin, which may take longer than a call that waits for it", {
    timeout: 60_000,
  }, async () => {
    await served(async (server) => {
      const [kubeconfig, begun, go] = ["kubeconfig", "begun", "go"].map((name) => join(folder, name));
      assert.ok(kubeconfig !== undefined && begun !== undefined && go !== undefined);
      const script = `echo once >> ${begun}; until [ -e ${go} ]; do sleep 0.02; done; echo '{"status": {"token": "two"}}'`;
      writeFileSync(kubeconfig, kubeconfigOf(server, { exec: { command: "sh", args: ["-c", script] } }));
      const clock = new ManualClock();
      const connection = connect(await accessOf({ kubeconfig }), { clock, userAgent: "test" });
      const calls = [1, 2].map(() => connection.call({ method: "GET", path: "/", timeoutMs: 1_000 }));
      const ends = Promise.all(calls.map((call) => assert.rejects(call, { code: "TIMED_OUT" })));
      await eventually("the plugin runs", () => (existsSync(begun) ? true : undefined));
      clock.advance(1_000);
      await ends;
      const next = connection.call({ method: "GET", path: "/", timeoutMs: 10_000 });
      writeFileSync(go, "");
      assert.equal((await next).status, 200);
      assert.equal(readFileSync(begun, "utf8"), "once\n");
      connection.close();
    });
  });

  it("of a kubeconfig is a plugin, for which a person may log in before a call's time begins", {
    timeout: 60_000,
  }, async () => {
    await served(async (server) => {
      const [kubeconfig, begun, loggedIn] = ["kubeconfig", "begun", "logged-in"].map((name) =>
        join(folder, name),
      );
      assert.ok(kubeconfig !== undefined && begun !== undefined && loggedIn !== undefined);
      const script = `touch ${begun}; until [ -e ${loggedIn} ]; do sleep 0.02; done; echo '{"status": {"token": "two"}}'`;
      writeFileSync(kubeconfig, kubeconfigOf(server, { exec: { command: "sh", args: ["-c", script] } }));
      const clock = new ManualClock();
      const access = await accessOf({ kubeconfig });
      const connection = connect(access, { clock, userAgent: "test", loginMs: 300_000 });
      const call = connection.call({ method: "GET", path: "/", timeoutMs: 3_000 });
      await eventually("the plugin runs", () => (existsSync(begun) ? true : undefined));
      clock.advance(200_000);
      writeFileSync(loggedIn, "");
      assert.equal((await call).status, 200);
      connection.close();
    });
  });

  it("of a kubeconfig is a plugin, which a connection that is closed waits for no more", {
    timeout: 60_000,
  }, async () => {
    const [kubeconfig, command] = [join(folder, "kubeconfig"), "sleep"];
    writeFileSync(kubeconfig, kubeconfigOf({ port: "1", ca: "ca" }, { exec: { command, args: ["3600"] } }));
    const connection = connect(await accessOf({ kubeconfig }), { clock: createClock(), userAgent: "test" });
    const call = connection.call({ method: "GET", path: "/", timeoutMs: 3_600_000 });
    setImmediate(() => connection.close());
    await assert.rejects(call, { message: "the connection to the API server is closed" });
  });

  it("of a kubeconfig is what a plugin prints", async () => {
    await served(async (server) => {
      const kubeconfig = join(folder, "kubeconfig");
      const exec = { command: "echo", args: ['{"status": {"token": "two"}}'] };
      writeFileSync(kubeconfig, kubeconfigOf(server, { exec }));
      assert.deepEqual(await statuses(await accessOf({ kubeconfig }), []), [200]);
    });
  });

  it("of a kubeconfig is a plugin, whose certificate may be no text", async () => {
    const kubeconfig = join(folder, "kubeconfig");
    const exec = { command: "echo", args: ['{"status": {"clientCertificateData": 5, "clientKeyData": 6}}'] };
    writeFileSync(kubeconfig, kubeconfigOf({ port: "1", ca: "ca" }, { exec }));
    const connection = connect(await accessOf({ kubeconfig }), { clock: createClock(), userAgent: "test" });
    await assert.rejects(connection.call({ method: "GET", path: "/" }), {
      code: "STORE_UNAVAILABLE",
      message: "no credentials for the API server at https://127.0.0.1:1: the client's cert is no text",
    });
    connection.close();
  });

  it("of a kubeconfig that is none is refused", async () => {
    const kubeconfig = join(folder, "none");
    await assert.rejects(accessOf({ kubeconfig }), {
      code: "CONFIG_INVALID",
      message: `BERTH_KUBECONFIG ${kubeconfig} cannot be read: ENOENT: no such file or directory, open '${kubeconfig}'`,
    });
  });

  for (const [data, what] of [
    ["", "empty"],
    ["\n", "empty"],
    [null, "empty"],
    [12, "no text"],
    [{}, "no text"],
  ] as const) {
    it(`of a kubeconfig is refused where it says an authority that is ${what}: ${JSON.stringify(data)}`, async () => {
      const kubeconfig = join(folder, "kubeconfig");
      const config = JSON.parse(kubeconfigOf({ port: "1", ca: "" }, { token: "two" }));
      const [{ cluster }] = config.clusters;
      const write = (over: object) => {
        config.clusters[0].cluster = { ...cluster, "certificate-authority-data": data, ...over };
        writeFileSync(kubeconfig, JSON.stringify(config));
      };
      write({});
      await assert.rejects(accessOf({ kubeconfig }), {
        code: "CONFIG_INVALID",
        message: `BERTH_KUBECONFIG ${kubeconfig} cannot be used: certificate-authority-data of cluster "c" is ${what}; put the authority's certificate there (base64 of its PEM), or leave the field out if one of this host's authorities signed the server's`,
      });
      for (const over of [{ "certificate-authority": "ca.crt" }, { "insecure-skip-tls-verify": true }]) {
        write(over);
        await accessOf({ kubeconfig });
      }
      write({ "certificate-authority-data": undefined });
      await accessOf({ kubeconfig });
    });
  }
});
