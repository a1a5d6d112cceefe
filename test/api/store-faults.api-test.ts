// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import {
  bareClaim,
  fullClaim,
  nth,
  poolOf,
  reservationOf,
  SAMPLE_NAMESPACES,
} from "../../allocator/store/contract/samples.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { requestCounts } from "./request-counts.ts";
import { openUndefinedPlane, type StoppablePlane } from "./shared-plane.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("what a real API server does to the store", () => {
    let plane: StoppablePlane;
    before(async () => {
      plane = await openUndefinedPlane();
    });
    after(() => plane?.close());

    const open = (user?: string) => openStore(plane.connect(user));

    it("is no empty store without the definitions", async () => {
      const store = open();
      await fails(
        store.get("claim", "shop/mysql-0"),
        "STORE_UNAVAILABLE",
        /read ipclaims shop\/mysql-0 with 404/,
      );
      await fails(
        store.list("pool")[Symbol.asyncIterator]().next(),
        "STORE_UNAVAILABLE",
        /list ippools with 404/,
      );
      await fails(store.create("pool", poolOf("db")), "STORE_UNAVAILABLE", /create ippools db with 404/);
    });

    it("refuses whom it does not know or allow, and says what to look at", async () => {
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), SAMPLE_NAMESPACES);
      await fails(
        open("nobody").create("pool", poolOf("db")),
        "STORE_READ_ONLY",
        /create ippools db with 403: .*User "nobody" cannot create resource "ippools".*; check roles/,
      );
    });

    it("does not take what has no name in Kubernetes, nor a claim without its namespace", async () => {
      const store = open();
      await fails(
        store.create("pool", poolOf("Not_a_name")),
        "INTERNAL",
        /its name is no name in Kubernetes/,
      );
      assert.equal(await store.get("pool", "Not_a_name"), undefined);
      assert.equal(await store.get("claim", "no-namespace"), undefined);
      assert.equal(await store.get("reservation", "no address"), undefined);
      const stray = bareClaim("a", { namespace: "nowhere" });
      await fails(
        store.create("claim", stray),
        "WRITE_REFUSED",
        /404: namespaces "nowhere" not found; create the/,
      );
    });

    it("is asked once for each verb, and twice for a write that changes nothing", async () => {
      const store = open();
      const counts = async () => {
        const of = await requestCounts(plane.connect());
        return ["POST", "GET", "PATCH", "DELETE"].map((verb) => of({ resource: "ipclaims", verb }));
      };
      const costs = async (work: () => Promise<unknown>) => {
        const before = await counts();
        await work();
        return (await counts()).map((count, i) => count - (before[i] ?? 0));
      };
      const record = bareClaim("mysql-0", { nonce: "n1" });
      assert.deepEqual(await costs(() => store.create("claim", record)), [1, 0, 0, 0]);
      assert.deepEqual(await costs(() => store.create("claim", record)), [1, 1, 0, 0]);
      const seen = await store.get("claim", "shop/mysql-0");
      assert.ok(seen);
      assert.deepEqual(seen.record, record);
      const next = { ...record, nonce: "n2" };
      assert.deepEqual(await costs(() => store.replace("claim", seen, next)), [0, 0, 1, 0]);
      const now = await store.get("claim", "shop/mysql-0");
      assert.ok(now);
      assert.deepEqual(await costs(() => store.replace("claim", now, next)), [0, 0, 2, 0]);
      assert.deepEqual(await costs(() => store.replace("claim", seen, next)), [0, 0, 1, 0]);
      assert.deepEqual(await costs(() => store.create("claim", fullClaim("full-0"))), [1, 0, 1, 0]);
      const last = await store.get("claim", "shop/mysql-0");
      assert.ok(last);
      assert.deepEqual(await costs(() => store.remove("claim", last)), [0, 0, 0, 1]);
    });

    it("keeps what others write into an object", async () => {
      const store = open();
      const made = await store.create("claim", bareClaim("kept-0"));
      await kubectl(plane, "-n", "shop", "label", "ipclaim", "kept-0", "team=data");
      await kubectl(
        plane,
        "-n",
        "shop",
        "patch",
        "ipclaim",
        "kept-0",
        "--subresource=status",
        "--type=merge",
        "-p",
        CONDITION,
      );
      const stale = await store.replace("claim", made.stored, bareClaim("kept-0", { nonce: "n1" }));
      assert.deepEqual(stale, { kind: "conflict" });
      const seen = await store.get("claim", "shop/kept-0");
      assert.ok(seen);
      assert.deepEqual(seen.record, bareClaim("kept-0"));
      await store.replace("claim", seen, bareClaim("kept-0", { nonce: "n1" }));
      const now = await store.get("claim", "shop/kept-0");
      assert.ok(now);
      await store.report(now, { message: "it waits" });
      const path = "{.metadata.labels.team} {.status.conditions[0].type} {.status.message} {.spec.nonce}";
      const printed = await kubectl(
        plane,
        "-n",
        "shop",
        "get",
        "ipclaim",
        "kept-0",
        "-o",
        `jsonpath=${path}`,
      );
      assert.equal(printed, "data Ready it waits n1");
    });

    it("does not answer, is gone, and comes back", async () => {
      const store = open();
      const made = await store.create("reservation", reservationOf(nth(1)));
      await plane.apiServer.pause();
      await fails(
        store.get("reservation", nth(1)),
        "TIMED_OUT",
        /the API server at https:\/\/127.0.0.1:\d+ does not answer/,
      );
      await plane.apiServer.resume();
      assert.deepEqual(await store.get("reservation", nth(1)), made.stored);
      await plane.apiServer.stop("SIGKILL");
      const words = /the API server at https:\/\/127.0.0.1:\d+ cannot be reached: connect ECONNREFUSED/;
      await fails(store.get("reservation", nth(1)), "STORE_UNAVAILABLE", words);
      await fails(store.remove("reservation", made.stored), "STORE_UNAVAILABLE", words);
      await plane.start();
      assert.deepEqual(await store.get("reservation", nth(1)), made.stored);
      await store.close();
      await fails(store.get("reservation", nth(1)), "STORE_UNAVAILABLE", /the store is closed/);
    });
  });
}

const CONDITION = JSON.stringify({
  status: {
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "Ready",
        message: "",
        lastTransitionTime: "2026-01-01T00:00:00Z",
      },
    ],
  },
});

async function kubectl(plane: ControlPlane, ...args: readonly string[]): Promise<string> {
  const { rc, stdout, stderr } = await plane.kubectl(args);
  assert.equal(rc, 0, stderr);
  return stdout;
}

async function fails(work: Promise<unknown>, code: string, words: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof BerthError, String(error));
    assert.match(error.message, words);
    assert.equal(error.code, code);
    return true;
  });
}
