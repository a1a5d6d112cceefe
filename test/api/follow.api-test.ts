// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Logger, noopLogger } from "../../allocator/base/ports.ts";
import { Client } from "../../kube/api/client.ts";
import { type Connection, connect } from "../../kube/api/connection.ts";
import type { KubeItem } from "../../kube/api/resource.ts";
import { type ListWatchOptions, listAndWatch } from "../../kube/watch/list-watch.ts";
import type { Reflector } from "../../kube/watch/reflector.ts";
import { createClock } from "../../system/clock.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CONFIG_MAPS } from "./cluster-resources.ts";
import { startControlPlane } from "./harness.ts";
import { listItems } from "./list-items.ts";
import {
  type Lettered,
  lettered,
  makeMap,
  NAMESPACE,
  OURS,
  optionsFor,
  Reader,
  removeMap,
} from "./map-reader.ts";
import type { ControlPlane } from "./plane.ts";
import { TcpProxy } from "./proxy.ts";
import { requestCounts } from "./request-counts.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

const PATIENCE_MS = 30_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a watch of a real API server", () => {
    let plane: StoppablePlane;
    let direct: Client;
    let proxy: TcpProxy;
    let connection: Connection;
    const closing: (() => Promise<void> | void)[] = [];

    before(async () => {
      plane = await openControlPlane();
      direct = new Client(plane.connect(), CONFIG_MAPS);
    });
    after(() => plane?.close());

    beforeEach(async () => {
      proxy = await TcpProxy.start(Number(new URL(plane.url).port));
      connection = connect(throughProxy(plane, proxy), { clock: createClock(), userAgent: "berth-test" });
      closing.push(
        () => connection.close(),
        () => proxy.close(),
      );
    });
    afterEach(async () => {
      for (const close of closing.splice(0)) await close();
      for (const item of await listItems(direct, OURS)) await remove(item);
    });

    const make = (name: string) => makeMap(direct, name);
    const remove = (item: KubeItem) => removeMap(direct, item);
    const optionsOf = (more: Partial<ListWatchOptions> = {}) => ({ ...optionsFor(connection), ...more });
    const read = (more: Partial<ListWatchOptions> = {}): Reader => {
      const reader = new Reader(optionsOf(more));
      closing.unshift(() => reader.stop());
      return reader;
    };

    for (const pass of ["stream", "pages"] as const) {
      it(`goes on where it was after its connection broke (${pass})`, async () => {
        const first = await make("a");
        const reader = read({ pass });
        await reader.believes("a");
        proxy.cut();
        await make("b");
        await remove(first);
        await reader.believes("b");
        proxy.refuse(true);
        proxy.cut();
        await make("c");
        await pause(300);
        proxy.refuse(false);
        await reader.believes("b", "c");
        assert.equal(reader.relists, 1);
      });

      it(`notices that the network went silent (${pass})`, async () => {
        const reader = read({ pass, idleMs: 400 });
        await reader.believes();
        proxy.silence();
        await make("a");
        await reader.believes("a");
        assert.equal(reader.relists, 1);
      });
    }

    it("streams its full pass, or lists it by pages", async () => {
      await Promise.all(["a", "b", "c"].map(make));
      const lists = async () =>
        (await requestCounts(plane.connect()))({ resource: "configmaps", verb: "LIST" });
      const before = await lists();
      const streaming = read({ pass: "stream" });
      await streaming.believes("a", "b", "c");
      assert.equal(await lists(), before);
      const paging = read({ pass: "pages", pageSize: 2 });
      await paging.believes("a", "b", "c");
      assert.equal(await lists(), before + 2);
    });

    it("asks how far the API server has come, and gets nobody's object for it", async () => {
      const large = { metadata: { labels: { "berth-test": "" } }, data: { text: "x".repeat(900_000) } };
      await direct.create({ namespace: NAMESPACE, name: "large" }, large);
      const answers: { metadata: { resourceVersion: string }; items: readonly unknown[] }[] = [];
      const listening: Connection = {
        call: async (call) => {
          const answer = await connection.call(call);
          answers.push(answer.body as (typeof answers)[number]);
          return answer;
        },
        stream: (call, signal) => connection.stream(call, signal),
        close: () => {},
      };
      for (const selection of [OURS, { labelSelector: "berth-test" }]) {
        const reader = read({ connection: listening, selection });
        await reader.believes("large");
        const { metadata } = await make("a");
        await reader.believes("a", "large");
        proxy.cut();
        const next = await make("b");
        await reader.believes("a", "b", "large");
        const last = answers.at(-1);
        assert.deepEqual([last?.items.length, reader.relists], [0, 1]);
        assert.ok(BigInt(last?.metadata.resourceVersion ?? 0) >= BigInt(metadata.resourceVersion));
        await remove(next);
        await direct.remove({ namespace: NAMESPACE, name: "a" }, metadata);
        await reader.stop();
      }
    });

    it("begins again when the API server ends it, without a full pass", async () => {
      const reader = read({ watchSeconds: 1 });
      await reader.believes();
      const before = proxy.connections;
      await eventually(
        "two more connections",
        () => proxy.connections >= before + 2 || undefined,
        PATIENCE_MS,
      );
      await make("a");
      await reader.believes("a");
      assert.equal(reader.relists, 1);
    });

    it("waits for a kind that is not served yet, longer each time", async () => {
      const warnings: unknown[] = [];
      const log: Logger = { ...noopLogger, warn: (_, fields) => warnings.push(fields?.["ms"]) };
      const stop = new AbortController();
      const resource = {
        group: "berth.dev",
        version: "v1",
        plural: "nothings",
        kind: "Nothing",
        namespaced: false,
      };
      const changes = listAndWatch(optionsOf({ resource, selection: {}, log }), stop.signal);
      const next = changes.next();
      await eventually("three attempts", () => warnings.length >= 3 || undefined, PATIENCE_MS);
      stop.abort();
      assert.deepEqual(await next, { done: true, value: undefined });
      const [first, second, third] = warnings.map(Number);
      assert.ok(first && second && third && first >= 400 && second >= 800 && third >= 1600, warnings.join());
    });

    it("tells of what a selector selects alone", async () => {
      const reader = read({ selection: { ...OURS, fieldSelector: "metadata.name=b" } });
      await make("a");
      await make("b");
      await reader.believes("b");
    });
  });

  describe("a watch of a real API server", () => {
    let plane: StoppablePlane;
    let direct: Client;
    let proxy: TcpProxy;
    let connection: Connection;
    const readers: { stream?: Reader; pages?: Reader; direct?: Reader } = {};
    const errors: string[] = [];
    const reported: string[] = [];
    const stop = new AbortController();
    let reflector: Reflector<Lettered>;
    let running: Promise<void>;

    /** What reads goes through the proxy, which lets nothing through while API server and etcd are killed and started again. */
    before(async () => {
      plane = await openControlPlane();
      direct = new Client(plane.connect(), CONFIG_MAPS);
      proxy = await TcpProxy.start(Number(new URL(plane.url).port));
      connection = connect(throughProxy(plane, proxy), { clock: createClock(), userAgent: "berth-test" });
      const [first, second] = [await makeMap(direct, "a1"), await makeMap(direct, "b1")];
      await makeMap(direct, "bad");
      reflector = lettered(optionsFor(connection), { errors, reported });
      running = reflector.run(stop.signal);
      for (const pass of ["stream", "pages"] as const)
        readers[pass] = new Reader({ ...optionsFor(connection), pass });
      readers.direct = new Reader(optionsFor(plane.connect()));
      for (const reader of Object.values(readers)) await reader.believes("a1", "b1", "bad");
      await filled(first);
      proxy.refuse(true);
      proxy.cut();
      await removeMap(direct, second);
      await makeMap(direct, "a3");
      await plane.apiServer.stop("SIGKILL");
      await plane.etcd.stop("SIGKILL");
      await plane.start();
      await makeMap(direct, "a4");
      proxy.refuse(false);
    });
    after(async () => {
      stop.abort();
      await running;
      for (const reader of Object.values(readers)) await reader.stop();
      connection?.close();
      await proxy?.close();
      await plane?.close();
    });

    /** It has what is there, and hears of what comes and goes. */
    async function filled(first: KubeItem): Promise<void> {
      await reflector.synced;
      await makeMap(direct, "a2");
      await eventually("a2", () => reflector.get("default/a2"), PATIENCE_MS);
      const names = reflector.by("letter", "a").map(({ name }) => name);
      assert.deepEqual(names.sort(), ["a1", "a2"]);
      await removeMap(direct, first);
      await eventually("a1 gone", () => (reflector.size === 2 ? true : undefined), PATIENCE_MS);
      assert.deepEqual([...reflector.all()].sort(), [
        ["default/a2", { name: "a2", letter: "a" }],
        ["default/b1", { name: "b1", letter: "b" }],
      ]);
      assert.deepEqual(reflector.by("letter", "c"), []);
      for (const reader of Object.values(readers)) await reader.believes("a2", "b1", "bad");
    }

    for (const pass of ["stream", "pages"] as const)
      it(`makes a full pass when the API server forgot where it was (${pass})`, async () => {
        await readers[pass]?.believes("a2", "a3", "a4", "bad");
        assert.equal(readers[pass]?.relists, 2);
      });

    it("survives the API server and etcd", async () => {
      await readers.direct?.believes("a2", "a3", "a4", "bad");
    });

    it("fills a reflector, whose handlers cannot end it", async () => {
      await eventually("b1 gone", () => (reflector.get("default/b1") ? undefined : true), PATIENCE_MS);
      // a full pass tells of differences alone
      const names = ["a1", "b1", "a2", "a1", "a3", "a4", "b1"];
      assert.deepEqual(
        reported,
        names.map((name) => `default/${name}`),
      );
      assert.deepEqual(new Set(errors), new Set(["object cannot be used", "handler of a change failed"]));
    });
  });

  describe("a watch of an API server without WatchList", () => {
    it("makes its full pass by pages", async () => {
      const apiServerFlags = ["--feature-gates=WatchList=false"];
      const plane = await startControlPlane({ apiServerFlags, definitions: true });
      try {
        const connection = plane.connect();
        const place = { namespace: NAMESPACE, name: "a" };
        await new Client(connection, CONFIG_MAPS).create(place, {
          metadata: { labels: { "berth-test": "" } },
        });
        const selection = { labelSelector: "berth-test" };
        const reader = new Reader({ connection, resource: CONFIG_MAPS, selection, ...hostDeps() });
        await reader.believes("a");
        assert.equal(reader.relists, 1);
        await reader.stop();
      } finally {
        await plane.close();
      }
    });
  });
}

function throughProxy(plane: ControlPlane, proxy: TcpProxy) {
  return plane.kubeConfig().at({ server: `https://127.0.0.1:${proxy.port}` });
}
