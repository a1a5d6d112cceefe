// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { exposed } from "../../test/support/exposed.ts";
import type { Answer, Call, Connection } from "./connection.ts";
import { withRequestMetrics } from "./metered-connection.ts";

async function counted(call: Call, answer: Answer | Error, stream = false): Promise<readonly string[]> {
  const { metrics, of } = exposed();
  const given = async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const plain: Connection = { call: given, stream: given, close() {} };
  const connection = withRequestMetrics(plain, metrics, new ManualClock());
  const asked = stream ? connection.stream(call, new AbortController().signal) : connection.call(call);
  await asked.catch((error: unknown) => assert.equal(error, answer));
  return of("berth_api_requests_total");
}

const OK: Answer = { status: 200, body: {} };
const CLAIMS = "/apis/berth.dev/v1alpha1";

describe("calls of the API server are counted", () => {
  for (const [call, labels] of [
    [{ method: "GET", path: `${CLAIMS}/ipclaims` }, 'verb="list",resource="ipclaims"'],
    [{ method: "GET", path: `${CLAIMS}/namespaces/shop/ipclaims` }, 'verb="list",resource="ipclaims"'],
    [{ method: "GET", path: `${CLAIMS}/namespaces/shop/ipclaims/a` }, 'verb="get",resource="ipclaims"'],
    [
      { method: "PATCH", path: `${CLAIMS}/namespaces/shop/ipclaims/a/status` },
      'verb="patch",resource="ipclaims/status"',
    ],
    [{ method: "POST", path: `${CLAIMS}/ipreservations` }, 'verb="create",resource="ipreservations"'],
    [
      { method: "DELETE", path: `${CLAIMS}/ipreservations/10.0.0.1` },
      'verb="delete",resource="ipreservations"',
    ],
    [{ method: "GET", path: "/api/v1/namespaces/shop" }, 'verb="get",resource="namespaces"'],
    [{ method: "GET", path: "/api/v1/namespaces" }, 'verb="list",resource="namespaces"'],
    [{ method: "GET", path: "/api/v1/nodes/n1" }, 'verb="get",resource="nodes"'],
    [{ method: "GET", path: "/apis" }, 'verb="list",resource="other"'],
  ] satisfies [Call, string][]) {
    it(`${call.method} ${call.path}`, async () => {
      assert.deepEqual(await counted(call, OK), [`{${labels},code="200"} 1`]);
    });
  }

  it("a watch by its beginning", async () => {
    const call: Call = { method: "GET", path: "/api/v1/pods" };
    assert.deepEqual(await counted(call, { status: 410, body: {} }, true), [
      '{verb="watch",resource="pods",code="410"} 1',
    ]);
  });

  it("by the code of the fault where there was no answer", async () => {
    const call: Call = { method: "GET", path: "/api/v1/pods" };
    assert.deepEqual(await counted(call, new BerthError("TIMED_OUT", "it was silent")), [
      '{verb="list",resource="pods",code="TIMED_OUT"} 1',
    ]);
  });
});
