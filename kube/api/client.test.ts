// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { PagingConnection } from "../testing/paging-connection.ts";
import { listAndWatch } from "../watch/list-watch.ts";
import { Client } from "./client.ts";
import { CLAIMS } from "./resource.ts";

const MIB = 2 ** 20;

/** Sizes of objects: many small ones, and a few in the middle that a page has no room for. */
const MIXED = [...sizes(300, 2_000), ...sizes(20, 1.4 * MIB), ...sizes(300, 2_000)];

function sizes(count: number, bytes: number): number[] {
  return Array.from({ length: count }, () => bytes);
}

async function listed(connection: PagingConnection, limit: number): Promise<string[]> {
  const names: string[] = [];
  for await (const { items } of new Client(connection, CLAIMS).pages({}, limit)) {
    names.push(...items.map(({ metadata }) => metadata.name));
  }
  return names;
}

describe("a list of pages", () => {
  it("asks for as many objects as it is told while they are small", async () => {
    const connection = new PagingConnection(sizes(1_200, 2_000));
    assert.deepEqual(await listed(connection, 500), connection.names);
    assert.deepEqual(connection.limits, [500, 500, 500]);
  });

  it("goes on with smaller pages where a page is too large, and with larger ones after that", async () => {
    const connection = new PagingConnection(MIXED);
    assert.deepEqual(await listed(connection, 500), connection.names);
    assert.ok(connection.most <= 4 * MIB, `read ${connection.most} bytes at once`);
    assert.ok(connection.limits.length < 50, connection.limits.join());
  });

  for (const kib of [9, 10, 15, 30]) {
    it(`reads one page of objects of about ${kib} KiB in vain, and no other`, async () => {
      const uneven = Array.from({ length: 5_000 }, (_, n) => kib * 1024 * (n % 2 === 0 ? 0.5 : 1.5));
      const connection = new PagingConnection(uneven);
      assert.equal((await listed(connection, 500)).length, 5_000);
      assert.equal(connection.inVain, 1);
      const pages = (5_000 * kib * 1024) / (4 * MIB);
      assert.ok(connection.limits.length < 2 * pages, `${connection.limits.length} calls for ${pages} pages`);
    });
  }

  it("reads an object however large it is", async () => {
    const connection = new PagingConnection([...sizes(5, 100), 9 * MIB, ...sizes(5, 100)]);
    assert.deepEqual(await listed(connection, 500), connection.names);
  });

  it("is how a watch lists what is not streamed", async () => {
    const connection = new PagingConnection(MIXED);
    const stop = new AbortController();
    const random = { fraction: () => 0, token: () => "t" };
    const clock = createClock();
    const options = { connection, resource: CLAIMS, clock, random, log: noopLogger, pass: "pages" } as const;
    const names: string[] = [];
    for await (const change of listAndWatch(options, stop.signal)) {
      if (change.type === "put") names.push(change.item.metadata.name);
      if (change.type === "synced") break;
    }
    assert.deepEqual(names, connection.names);
    assert.ok(connection.most <= 4 * MIB);
  });
});

describe("a page at once", () => {
  it("is none where an answer would be too large", async () => {
    const client = (bytes: number) => new Client(new PagingConnection(sizes(80, bytes)), CLAIMS);
    const first = { limit: 500, next: "" };
    assert.equal((await client(2_000).pageAtOnce({}, first))?.items.length, 80);
    assert.equal(await client(1.4 * MIB).pageAtOnce({}, first), undefined);
  });
});
