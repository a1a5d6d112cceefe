// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { Folder } from "../testing/folder.ts";

const claim = claimRecord({ name: "web", identity: { kind: "Pod", apiVersion: "v1", name: "web" } });
const ASSIGNED = { "berth.dev/claim": "web" };

async function checked(t: TestContext, objects: readonly unknown[], claims = [] as (typeof claim)[]) {
  const reservations = claims.flatMap((one) => reservationsOf(one));
  const data = await Folder.of(t, { pools: [DB_POOL], claims, reservations, objects });
  const { code, stdout } = await data.call("check");
  assert.equal(code, 0);
  return stdout;
}

describe("berthctl check of pods whose claim is gone", () => {
  it("names them, and what to do", async (t) => {
    assert.equal(
      await checked(t, [pod("web", { annotations: ASSIGNED })]),
      "pending   without-claim   pod shop/web was admitted with claim shop/web, which was released: without it the pod cannot start, and an address that it runs with may be given to another; delete it with: berthctl delete pod/shop/web, and apply it again\n" +
        "ok, but 1 pod has lost a claim: 1 pool, 0 claims, 0 reservations, 0 attachments\n",
    );
  });

  it("says nothing of pods that have theirs, were given none, have ended or are going", async (t) => {
    const going = pod("going", { annotations: ASSIGNED });
    const metadata = { ...(going["metadata"] as object), deletionTimestamp: "2026-01-01T00:00:00Z" };
    const objects = [
      { ...going, metadata },
      pod("plain"),
      { ...pod("done", { annotations: ASSIGNED }), status: { phase: "Succeeded" } },
      pod("host", { annotations: ASSIGNED, spec: { hostNetwork: true } }),
    ];
    assert.match(await checked(t, objects), /^ok: /);
    assert.match(await checked(t, [pod("web", { annotations: ASSIGNED })], [claim]), /^ok: /);
  });

  it("explain says who has the address of such a pod now", async (t) => {
    const other = claimRecord({ name: "web-2", identity: { kind: "Pod", apiVersion: "v1", name: "web-2" } });
    const annotations = { ...ASSIGNED, "berth.dev/addresses": "10.20.0.70" };
    const contents = { pools: [DB_POOL], objects: [pod("web", { annotations })] };
    const taken = await Folder.of(t, { ...contents, claims: [other], reservations: reservationsOf(other) });
    assert.match(
      (await taken.call("explain", "pod/shop/web")).stdout,
      /\n-> delete pod shop\/web; 10\.20\.0\.70 is held by shop\/web-2: create it again with other addresses, or release that claim first\n$/,
    );
    const free = await Folder.of(t, contents);
    assert.match(
      (await free.call("explain", "pod/shop/web")).stdout,
      /\n-> delete pod shop\/web and create it again\n$/,
    );
  });

  it("explain says for which interface a claim waits", async (t) => {
    const waiting = { ...claim, interface: "net1" };
    const contents = { pools: [DB_POOL], claims: [waiting], reservations: reservationsOf(waiting) };
    const data = await Folder.of(t, { ...contents, objects: [pod("web", { annotations: ASSIGNED })] });
    assert.match(
      (await data.call("explain", "pod/shop/web")).stdout,
      /^pod\/shop\/web has claim shop\/web, and is bound to it when its interface net1 is attached, which the claim is for\n/,
    );
  });

  it("tells once what a StatefulSet lacks", async (t) => {
    const objects = [
      workload("StatefulSet", "mysql", { replicas: 1, annotations: { "berth.dev/ips": "10.20.0.70" } }),
      pod("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } }),
    ];
    assert.match(await checked(t, objects), /^pending +missing .*\nok, but 1 ordinal has no claim: /);
  });
});
