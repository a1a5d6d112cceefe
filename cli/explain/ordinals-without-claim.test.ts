// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Claim, Identity } from "../../allocator/model/claim.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { ordinalsWithoutClaim } from "./ordinals-without-claim.ts";

const IPS = "berth.dev/ips";
const LIST = { [IPS]: "10.20.0.70;10.20.0.71" };

function claimOf(name: string, address: string, identity: Identity): Claim {
  return claimRecord({ name, identity, nonce: `n-${name}`, addresses: addrs(address) });
}

function ordinalOf(ordinal: number): Identity {
  return { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal };
}

const BY_HAND =
  "claim shop/mysql-1 was made by hand and holds 10.20.0.80, and this asks for 10.20.0.71; ask for what the claim has, or delete the claim or change its spec.request";

/** What `check` says of a StatefulSet of that size beside these claims. */
async function checked(
  t: TestContext,
  claims: readonly Claim[],
  { replicas = 2, annotations = LIST, objects = [] as readonly unknown[], spec = {} } = {},
): Promise<string> {
  const set = workload("StatefulSet", "mysql", { replicas, annotations, spec });
  const reservations = claims.flatMap((claim) => reservationsOf(claim));
  const data = await Folder.of(t, { pools: [DB_POOL], claims, reservations, objects: [set, ...objects] });
  const { code, stdout, stderr } = await data.call("check");
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}

const FIRST = claimOf("mysql-0", "10.20.0.70", ordinalOf(0));
const SECOND = claimOf("mysql-1", "10.20.0.71", ordinalOf(1));

describe("berthctl check of the ordinals of a StatefulSet", () => {
  it("says nothing where each has its claim, or the template asks for nothing", async (t) => {
    assert.equal(await checked(t, [FIRST, SECOND]), "ok: 1 pool, 2 claims, 2 reservations, 0 attachments\n");
    assert.match(await checked(t, [], { annotations: {} as typeof LIST }), /^ok: /);
    assert.match(await checked(t, [FIRST], { replicas: 1 }), /^ok: /);
    const byPool = { "berth.dev/pools": "db" } as unknown as typeof LIST;
    assert.match(
      await checked(t, [], { replicas: 1001, annotations: byPool }),
      /^ok: /,
      "none is reserved ahead",
    );
  });

  it("names one that has none, and what to do", async (t) => {
    assert.equal(
      await checked(t, [FIRST]),
      "pending   missing   StatefulSet mysql, ordinal 1 has no claim shop/mysql-1: no address is kept for its pod, which asks when it is created; see: berthctl explain -f FILE, with the StatefulSet in FILE\n" +
        "ok, but 1 ordinal has no claim: 1 pool, 1 claim, 1 reservation, 0 attachments\n",
    );
  });

  for (const [pools, reported] of [
    ['{"ipv4":["spider-v4"]}', 0],
    ['{"ipv4":["db"]}', 2],
  ] as const) {
    it(`of a cluster: ${reported === 0 ? "says nothing of" : "names"} those of Spiderpool's ${pools}`, async (t) => {
      const annotations = { "ipam.spidernet.io/ippool": pools };
      const set = workload("StatefulSet", "mysql", { replicas: 2, annotations });
      const data = await Folder.of(t, { pools: [DB_POOL], objects: [set] });
      const found = await withBackend(data.context(), "read", (backend) =>
        ordinalsWithoutClaim([], { ...backend, place: "cluster" }, data.clock),
      );
      assert.equal(found?.length, reported);
    });
  }

  for (const place of ["data", "cluster"] as const) {
    it(`says by which limit of a namespace one has none, in place ${place}`, async (t) => {
      const limited = { ...DB_POOL, spec: { ...DB_POOL.spec, limits: { perNamespace: 1 } } };
      const set = workload("StatefulSet", "mysql", { replicas: 2, annotations: { "berth.dev/pools": "db" } });
      const data = await Folder.of(t, {
        pools: [limited],
        claims: [FIRST],
        reservations: reservationsOf(FIRST),
        objects: [set],
      });
      const found = await withBackend(data.context(), "read", (backend) =>
        ordinalsWithoutClaim([{ key: "shop/mysql-0", record: FIRST }], { ...backend, place }, data.clock),
      );
      assert.equal(found?.length, 1);
      assert.match(
        found[0]?.message ?? "",
        /^StatefulSet mysql, ordinal 1 has no claim shop\/mysql-1 \(namespace shop holds 1 of the 1 address that pool "db" allows one namespace; release one, or ask for a higher limits\.perNamespace\): no address is kept/,
      );
    });
  }

  it("does not say that a service account may not use a pool, which it cannot know", async (t) => {
    const closed = { ...DB_POOL, spec: { ...DB_POOL.spec, authorization: "ServiceAccount" as const } };
    const set = workload("StatefulSet", "mysql", { replicas: 1, annotations: { "berth.dev/pools": "db" } });
    const data = await Folder.of(t, { pools: [closed], objects: [set] });
    const found = await withBackend(data.context(), "read", (backend) =>
      ordinalsWithoutClaim([], { ...backend, place: "cluster" }, data.clock),
    );
    assert.match(found?.[0]?.message ?? "", /has no claim shop\/mysql-0: no address is kept/);
    const { stdout } = await data.call("check");
    assert.match(
      stdout,
      /has no claim shop\/mysql-0 \(pool "db" is only for service accounts with the verb "use"/,
    );
  });

  it("counts from the first ordinal, and says why one can have none", async (t) => {
    const spec = { ordinals: { start: 1 } };
    const text = await checked(t, [claimOf("mysql-1", "10.20.0.70", ordinalOf(1))], { replicas: 3, spec });
    assert.match(text, /^pending +missing +StatefulSet mysql, ordinal 2 has no claim shop\/mysql-2: /);
    assert.match(
      text,
      /\npending +missing +StatefulSet mysql, ordinal 3 has no claim shop\/mysql-3 \(.*2.*\): /,
    );
    assert.match(text, /\nok, but 2 ordinals have no claim: /);
  });

  it("names one whose name has a claim of another identity", async (t) => {
    const bare: Identity = { kind: "Pod", apiVersion: "v1", name: "mysql-1" };
    const used = {
      ...claimOf("mysql-1", "10.20.0.80", bare),
      binding: bindingTo("mysql-1", "node-a"),
      status: { phase: "Attached", attachment: attachmentOf("mysql-1") } as const,
    };
    const running = { ...pod("mysql-1", { uid: "uid-of-mysql-1" }), status: { phase: "Running" } };
    assert.equal(
      await checked(t, [FIRST, used], { objects: [running] }),
      "pending   of-another   StatefulSet mysql, ordinal 1 has no claim: claim shop/mysql-1 (10.20.0.80) belongs to Pod mysql-1; it passes to the StatefulSet when pod mysql-1 is gone, or give it back: berthctl release shop/mysql-1\n" +
        "ok, but 1 ordinal has no claim: 1 pool, 2 claims, 2 reservations, 0 attachments\n",
    );
    const kruise = claimOf("mysql-1", "10.20.0.71", {
      ...ordinalOf(1),
      apiVersion: "apps.kruise.io/v1beta1",
    });
    assert.match(
      await checked(t, [FIRST, kruise]),
      /^pending +of-another +StatefulSet mysql, ordinal 1 has no claim: /,
    );
  });

  it("takes a claim that a person made for whoever has the name", async (t) => {
    const made = {
      ...claimOf("mysql-1", "10.20.0.71", { kind: "Pod", apiVersion: "v1", name: "mysql-1" }),
      handMade: true,
    } as const;
    assert.match(await checked(t, [FIRST, made]), /^ok: /);
  });

  it("names one whose pod is refused for a claim that a person made, in the words of admission", async (t) => {
    const made = {
      ...claimOf("mysql-1", "10.20.0.80", { kind: "Pod", apiVersion: "v1", name: "mysql-1" }),
      handMade: true,
    } as const;
    assert.equal(
      await checked(t, [FIRST, made]),
      `pending   of-another   StatefulSet mysql, ordinal 1 has no claim, and its pod is refused when it is created: ${BY_HAND}\n` +
        "ok, but 1 ordinal has no claim: 1 pool, 2 claims, 2 reservations, 0 attachments\n",
    );
  });
});
