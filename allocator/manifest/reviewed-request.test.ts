// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { NAMED_ROWS } from "./dialects.ts";
import { ASSIGNED } from "./opt-in.ts";
import { OWN_REQUESTS } from "./own-keys.ts";
import { NAMED_DOMAIN, reviewedRequest } from "./reviewed-request.ts";

const OTHERS = {
  "kubectl.kubernetes.io/last-applied-configuration": "{}\n",
  "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
  "sidecar.istio.io/status": "{}",
  "prometheus.io/scrape": "true",
};

describe("the request that was reviewed", () => {
  it("is a line for each annotation that may ask", () => {
    const asked = { "berth.dev/pools": "db", "cni.projectcalico.org/ipAddrs": '["10.0.0.1"]' };
    assert.equal(
      reviewedRequest({ ...OTHERS, ...asked }, {}),
      'berth.dev/pools=db\ncni.projectcalico.org/ipAddrs=["10.0.0.1"]',
    );
  });

  it("is empty where the namespace asks", () => assert.equal(reviewedRequest(OTHERS, {}), ""));

  it("has what the pod was given, and not what it brought along in its place", () => {
    const brought = { "berth.dev/pools": "db", "berth.dev/claim": "other", "berth.dev/token": "x" };
    const assigned = { "berth.dev/claim": "web-0", "berth.dev/addresses": "10.0.0.1" };
    assert.equal(
      reviewedRequest(brought, assigned),
      "berth.dev/pools=db\nberth.dev/claim=web-0\nberth.dev/addresses=10.0.0.1",
    );
  });

  it("has none of what a pod brought along that Berth alone writes", () =>
    assert.equal(reviewedRequest(Object.fromEntries(ASSIGNED.map((key) => [key, "x"])), {}), ""));

  it("has every key that asks for something, of Berth and of others", () => {
    const listed = DIALECT_ROWS.filter(({ matches }) => matches === undefined).map(({ key }) => key);
    for (const key of [...OWN_REQUESTS, ...listed, "batch.kubernetes.io/job-completion-index"])
      assert.equal(reviewedRequest({ [key]: "1" }, {}), `${key}=1`);
  });

  it("has the keys with names in them", () => {
    const key = "net1.default.kubernetes.io/ip_address";
    assert.ok(NAMED_ROWS.some(({ matches }) => matches?.test(key)));
    assert.equal(reviewedRequest({ [key]: "10.0.0.1" }, {}), `${key}=10.0.0.1`);
    const from = NAMED_DOMAIN.source.slice(0, -"[/]".length);
    for (const { matches } of NAMED_ROWS) assert.ok(matches?.source.startsWith(from), matches?.source);
  });

  it("is nothing where a value has lines of its own, or it is too long to be carried about", () => {
    assert.equal(reviewedRequest({ "berth.dev/pools": "db\nberth.dev/sticky=true" }, {}), undefined);
    assert.equal(reviewedRequest({ "berth.dev/pools": "x".repeat(600) }, {}), undefined);
  });
});
