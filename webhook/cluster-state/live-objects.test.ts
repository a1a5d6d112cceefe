// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { refTo } from "../../test/support/fixtures.ts";
import { type Json, namespaceObject, workload } from "../../test/support/objects.ts";
import { LiveObjects } from "./live-objects.ts";

/** An API server that answers each call for one object with that, at this revision. */
class OneOfEach implements Connection {
  revision = "1";
  uid = "u-1";
  calls = 0;

  async call({ path }: Call): Promise<Answer> {
    this.calls++;
    const made = path.includes("/namespaces/shop/")
      ? workload("Deployment", "web", { annotations: { "berth.dev/ips": "10.20.0.70" } })
      : namespaceObject("shop", {});
    const { metadata, ...rest } = made as { metadata: Json };
    const meta = { ...metadata, uid: this.uid, resourceVersion: this.revision };
    return { status: 200, body: { ...rest, metadata: meta } };
  }

  stream(): Promise<never> {
    return Promise.reject(new Error("nothing is watched"));
  }

  close(): void {}
}

describe("a workload and a namespace that are asked for again and again", () => {
  it("are read each time, and are the same object as long as they have not changed", async () => {
    const connection = new OneOfEach();
    const live = new LiveObjects(connection);
    const of = async () => [await live.workload(refTo("Deployment", "web")), await live.namespace("shop")];
    const isSame = async ([one, other]: readonly unknown[]) => {
      const [workloadNow, namespaceNow] = await of();
      return [workloadNow === one, namespaceNow === other];
    };
    const first = await of();
    assert.deepEqual([await isSame(first), connection.calls], [[true, true], 4]);
    connection.revision = "2";
    const second = await of();
    assert.deepEqual(await isSame(first), [false, false]);
    assert.deepEqual(second, first);
    connection.uid = "u-2";
    assert.deepEqual(await isSame(second), [false, false]);
  });
});
