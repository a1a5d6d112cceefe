// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { serveProbes } from "./probes.ts";

const metrics = { expose: async () => ({ contentType: "text/plain; version=0.0.4", body: "up 1\n" }) };

describe("the agent's probes", () => {
  it("say how it is", async () => {
    let why: string | undefined = "claims are not loaded";
    const options = { host: "127.0.0.1", port: 0, notReady: () => why, metrics, log: noopLogger };
    const probes = await serveProbes(options);
    try {
      const get = async (path: string) => {
        const response = await fetch(`http://127.0.0.1:${probes.port}${path}`);
        return [response.status, response.headers.get("content-type"), await response.text()];
      };
      assert.deepEqual(await get("/healthz"), [200, "text/plain", "ok\n"]);
      assert.deepEqual(await get("/readyz"), [503, "text/plain", "claims are not loaded\n"]);
      why = undefined;
      assert.deepEqual(await get("/readyz"), [200, "text/plain", "ok\n"]);
      assert.deepEqual(await get("/metrics"), [200, "text/plain; version=0.0.4", "up 1\n"]);
      assert.deepEqual(await get("/"), [404, "text/plain", "not found\n"]);
      const taken = serveProbes({ ...options, port: probes.port });
      await assert.rejects(taken, {
        code: "CONFIG_INVALID",
        message: `cannot serve metrics on 127.0.0.1 port ${probes.port}: listen EADDRINUSE: address already in use 127.0.0.1:${probes.port}`,
      });
    } finally {
      await Promise.all([probes.close(), probes.close()]);
    }
  });

  it("gather metrics once for those who ask at the same time", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    let gathered = 0;
    const slow = {
      expose: async () => {
        gathered++;
        await gate;
        return await metrics.expose();
      },
    };
    const options = { host: "127.0.0.1", port: 0, notReady: () => undefined, metrics: slow, log: noopLogger };
    const probes = await serveProbes(options);
    const get = async () => await (await fetch(`http://127.0.0.1:${probes.port}/metrics`)).text();
    const { promise: allAsked, resolve: allCame } = Promise.withResolvers<void>();
    let asked = 0;
    const onRequest = (message: unknown) => {
      const { request } = message as { readonly request: IncomingMessage };
      if (request.socket.localPort === probes.port && ++asked === 3) allCame();
    };
    subscribe("http.server.request.start", onRequest);
    try {
      const answers = [get(), get(), get()];
      await allAsked;
      release();
      for (const text of await Promise.all(answers)) assert.equal(text, "up 1\n");
      assert.equal(gathered, 1);
    } finally {
      unsubscribe("http.server.request.start", onRequest);
      await probes.close();
    }
  });

  it("break the connection when metrics cannot be had", async () => {
    const broken = {
      expose: async () => {
        throw new Error("no");
      },
    };
    const options = {
      host: "127.0.0.1",
      port: 0,
      notReady: () => undefined,
      metrics: broken,
      log: noopLogger,
    };
    const probes = await serveProbes(options);
    try {
      await assert.rejects(fetch(`http://127.0.0.1:${probes.port}/metrics`));
      assert.equal((await fetch(`http://127.0.0.1:${probes.port}/healthz`)).status, 200);
    } finally {
      await probes.close();
    }
  });
});
