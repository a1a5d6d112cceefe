// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import {
  assertNever,
  BerthError,
  FAULTS,
  type FaultCode,
  REFUSALS,
  type RefusalCode,
} from "../../allocator/base/errors.ts";
import { decodeRecord } from "../../allocator/store/codec.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import type { Store } from "../../allocator/store/store.ts";
import { noStack } from "../../cli/backend/stack-file.ts";
import { get } from "../../cli/commands/get.ts";
import { readArguments } from "../../cli/terminal/arguments.ts";
import { bindToBoot } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import { errorOf, NodeBench } from "../../ipam-plugin/agent/testing/node-bench.ts";
import { CNI_CODES } from "../../ipam-plugin/cni/errors.ts";
import { toBerthError } from "../../kube/api/status.ts";
import { renderErrorReference } from "../../scripts/error-reference.ts";
import { EXAMPLES, FAULT_EXAMPLES } from "../../scripts/error-texts.ts";
import { createClock } from "../../system/clock.ts";
import { readPair } from "../../system/pem/pair.ts";
import { issueAuthority } from "../../webhook/certificates/issue.ts";
import type { Route } from "../../webhook/review/admission-review.ts";

import { altered } from "../simulation/altered.ts";
import { bindingTo, DB_POOL, parsed, poolRecord } from "../support/fixtures.ts";
import {
  claimObject,
  deniedAs,
  deploymentPod,
  type Json,
  pod,
  poolObject,
  statefulPod,
} from "../support/objects.ts";
import { send } from "../support/reviewing.ts";
import { openWorld, type World, type WorldOptions } from "../support/world.ts";

const IPV4 = { ...DB_POOL, spec: { ...DB_POOL.spec, ranges: DB_POOL.spec.ranges.slice(0, 1) } };
const TINY = poolRecord("tiny", "10.80.0.0/32");

/** What leads to an example: the pools, what came before, and the review that is refused. */
interface Story {
  readonly pools?: WorldOptions["pools"];
  readonly wrap?: (store: Store) => Store;
  readonly before?: (world: World) => Promise<unknown>;
  readonly route?: Route;
  readonly operation?: "CREATE" | "DELETE";
  readonly object: Json;
}

const wants = (ips: string) => pod("licence", { annotations: { "berth.dev/ips": ips } });
const from = (pools: string, more: Readonly<Record<string, string>> = {}) =>
  pod("licence", { annotations: { "berth.dev/pools": pools, ...more } });
const mysql = (ips: string) => statefulPod("mysql", 0, { annotations: { "berth.dev/ips": ips } });
const db = (spec: Json) => [{ ...IPV4, spec: { ...IPV4.spec, ...spec } }];
const admitted = (object: Json) => (world: World) => send(world, "/mutate/pods", object);

async function bound(world: World): Promise<void> {
  await admitted(mysql("10.20.0.70"))(world);
  const seen = await world.realStore.get("claim", "shop/mysql-0");
  assert.ok(seen);
  await world.realStore.replace("claim", seen, { ...seen.record, binding: bindingTo("mysql-0", "node-a") });
  await world.settle();
}

async function releasing(world: World): Promise<void> {
  await admitted(mysql("10.20.0.70"))(world);
  const seen = await world.realStore.get("claim", "shop/mysql-0");
  assert.ok(seen);
  await world.realStore.replace("claim", seen, { ...seen.record, releasing: true });
  await world.settle();
}

const web = deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.70" } });
const listed = statefulPod("mysql", 2, { annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.71" } });

/** No claim can be created any more. */
function overQuota(store: Store): Store {
  const said =
    'ipclaims.berth.dev "licence" is forbidden: exceeded quota: claims, requested: count/ipclaims.berth.dev=1, used: count/ipclaims.berth.dev=5, limited: count/ipclaims.berth.dev=5';
  const body = { reason: "Forbidden", message: said };
  return altered(store, {
    create: async (kind, record) => {
      if (kind === "claim") throw toBerthError({ status: 403, body }, "create ipclaims shop/licence");
      return await store.create(kind, record);
    },
  });
}

/** Said by the agent at ADD, and by nobody else. */
type OfAgent = "BLOCKS_EXHAUSTED";

const STORIES: Readonly<Record<Exclude<RefusalCode, OfAgent>, Story>> = {
  REQUEST_INVALID: { object: wants("10.20.0.70/24") },
  ADDRESS_OUTSIDE: { object: wants("192.0.2.1") },
  ADDRESS_EXCLUDED: { object: wants("10.20.0.100") },
  ADDRESS_TAKEN: { before: admitted(mysql("10.20.0.70")), object: wants("10.20.0.70") },
  POOL_UNKNOWN: { object: from("dbs") },
  POOL_DISABLED: { pools: db({ disabled: true }), object: from("db") },
  POOL_FORBIDDEN: { pools: db({ namespaceSelector: { matchLabels: { team: "bank" } } }), object: from("db") },
  NODE_MISMATCH: {
    pools: [
      poolRecord("beijing", "10.1.0.0/24", {
        nodeSelector: { matchLabels: { "topology.kubernetes.io/zone": "beijing" } },
      }),
    ],
    object: pod("licence", {
      annotations: { "berth.dev/pools": "beijing" },
      spec: { nodeSelector: { "topology.kubernetes.io/zone": "shanghai" } },
    }),
  },
  POOL_EXHAUSTED: {
    pools: [TINY],
    before: admitted(pod("other", { annotations: { "berth.dev/pools": "tiny" } })),
    object: from("tiny"),
  },
  POOL_INVALID: {
    route: "/validate/pools",
    object: poolObject("db", { ranges: [{ cidr: "10.20.0.7/24" }] }),
  },
  POOL_OVERLAPS: {
    route: "/validate/pools",
    object: poolObject("web", { ranges: [{ cidr: "10.20.0.0/24", from: "10.20.0.150" }] }),
  },
  POOL_IN_USE: {
    before: admitted(mysql("10.20.0.70")),
    route: "/validate/pools",
    operation: "DELETE",
    object: poolObject("db", {}),
  },
  FAMILY_UNAVAILABLE: { pools: [TINY], object: from("tiny", { "berth.dev/families": "IPv6" }) },
  LIST_TOO_SHORT: { object: listed },
  SET_EXHAUSTED: { before: admitted(web), object: web },
  LIMIT_REACHED: {
    pools: db({ limits: { perNamespace: 1 } }),
    before: admitted(mysql("10.20.0.70")),
    object: from("db"),
  },
  CLAIM_CHANGED: { before: bound, object: mysql("10.20.0.71") },
  CLAIM_RELEASING: {
    before: releasing,
    route: "/validate/pods",
    object: pod("mysql-0", { annotations: { "berth.dev/claim": "mysql-0", "berth.dev/token": "t" } }),
  },
  CLAIM_MISSING: { route: "/validate/pods", object: wants("10.20.0.70") },
  CLAIM_BUSY: {
    before: bound,
    route: "/validate/claims",
    operation: "DELETE",
    object: claimObject("mysql-0", {}),
  },
  CLAIM_REFUSED: { wrap: overQuota, object: from("db") },
  OBJECT_INVALID: {
    route: "/validate/pools",
    object: { apiVersion: "berth.dev/v1alpha1", kind: "IPBlock", metadata: { name: "b" } },
  },
};

/** What the API server answers to a write of a claim. */
function answered(
  status: number,
  message: string,
  more: Json = {},
  what = "create ipclaims shop/licence",
): never {
  throw toBerthError({ status, body: { message, ...more } }, what);
}

const MISSING = { reason: "NotFound", details: { kind: "namespaces", name: "shop" } };
const LACKING =
  'ipclaims.berth.dev is forbidden: User "berth" cannot create resource "ipclaims" in API group "berth.dev" in the namespace "shop"';
const released = { kind: "claim", key: "shop/mysql-0", doing: "it was released" } as const;

/** What leads to the example of a fault. */
const MISHAPS: Readonly<Record<FaultCode, () => unknown>> = {
  STORE_UNAVAILABLE: () => answered(503, "apiserver is shutting down", {}, "list ipclaims"),
  STORE_FULL: () => answered(500, "etcdserver: mvcc: database space exceeded"),
  STORE_READ_ONLY: () => answered(403, LACKING),
  WRITE_REFUSED: () => answered(404, 'namespaces "shop" not found', MISSING),
  STATE_CORRUPT: () => decodeRecord("claim", "shop/mysql-0", '{"v":1,"rec'),
  CERTIFICATE_INVALID: async () => {
    const [one, other] = [await issueAuthority(createClock()), await issueAuthority(createClock())];
    readPair({ cert: one.cert, key: other.key });
  },
  JOURNAL_MISMATCH: () => {
    const path = "/run/berth/agent.sock.journal";
    const mark = JSON.stringify({ bootId: "boot", journal: "other", position: "1" });
    const file = { path, read: async () => mark, write: async () => {}, update: () => {}, close: () => {} };
    const own = { place: "/var/lib/berth/berth.db", bootId: "boot", journal: "own", position: 1 };
    return bindToBoot(file, { ...own, unknownSandboxes: async () => [], rename: async () => {} });
  },
  NOT_READY: () => {
    throw noStack("/var/lib/berth");
  },
  REVISION_CONFLICT: () => retryOnConflict({ get: async () => undefined }, released, async () => "conflict"),
  TIMED_OUT: () => answered(504, "request timed out"),
  CONFIG_INVALID: () => readArguments(get, ["--ouput"]),
  INTERNAL: () => assertNever("x" as never),
};

describe("docs/errors.md", () => {
  it("is what `node scripts/errors.ts --write` writes", () => {
    const written = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
    assert.equal(written, renderErrorReference());
  });

  it("has a row for every number of the plugin that is no refusal's", () => {
    const rows = renderErrorReference().match(/^\| \d+ \|.*$/gm) ?? [];
    assert.deepEqual(
      rows.map((row) => Number(row.split("|")[1])),
      Object.values(CNI_CODES),
    );
  });

  it("has an anchor for every code, once", () => {
    const headings = renderErrorReference().match(/^### .*$/gm);
    assert.deepEqual(
      headings,
      [...Object.keys(REFUSALS), ...Object.keys(FAULTS)].map((code) => `### ${code}`),
    );
  });

  it("shows what is really said: BLOCKS_EXHAUSTED", async () => {
    const node = await NodeBench.open();
    try {
      node.blockSource.stored.set(
        "db",
        parsed(poolRecord("db", "10.20.0.0/24", { blockSize: { ipv4: 30 } })),
      );
      node.blockSource.grant("db", "10.20.0.68/30");
      await node.hearBlocks();
      node.ipam = { pools: ["db"] };
      node.blockSource.owners = [
        { node: "node-b", family: "IPv4", blocks: 3 },
        { node: "node-a", family: "IPv4", blocks: 1 },
      ];
      for (const cid of ["a", "b", "c", "d"]) await node.add({ cid });
      const adding = node.call("ADD", { cid: "e" });
      const over = adding.then(() => true);
      const turn = () => new Promise<boolean>((resolve) => void setImmediate(resolve, false));
      while (!(await Promise.race([over, turn()]))) await node.clock.advance(1_000);
      const { msg, details } = errorOf(await adding);
      assert.deepEqual([details, msg], ["BLOCKS_EXHAUSTED", EXAMPLES.BLOCKS_EXHAUSTED]);
    } finally {
      await node.close();
    }
  });

  for (const [code, story] of Object.entries(STORIES) as [RefusalCode, Story][]) {
    it(`shows what is really said: ${code}`, async () => {
      await using world = await openWorld({
        pools: story.pools ?? [IPV4],
        ...(story.wrap === undefined ? {} : { wrap: story.wrap }),
      });
      await story.before?.(world);
      const { route = "/mutate/pods", operation = "CREATE", object } = story;
      assert.equal(deniedAs(await send(world, route, object, { operation })), `${code}: ${EXAMPLES[code]}`);
    });
  }

  for (const [code, mishap] of Object.entries(MISHAPS)) {
    it(`shows what is really said: ${code}`, async () => {
      await assert.rejects(
        async () => await mishap(),
        (error) => {
          assert.ok(error instanceof BerthError);
          assert.deepEqual([error.code, error.message], [code, FAULT_EXAMPLES[code as FaultCode]]);
          return true;
        },
      );
    });
  }
});
