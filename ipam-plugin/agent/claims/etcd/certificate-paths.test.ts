// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../../allocator/base/errors.ts";
import { accessOf } from "./certificate-paths.ts";

const HOST = { certificates: "/etc/cni/net.d", provenOnly: false };
const CLUSTER = { certificates: "/etc/berth/etcd", provenOnly: true };
const url = "https://10.0.0.1:2379";

function said(config: Parameters<typeof accessOf>[0], rules: Parameters<typeof accessOf>[1]): unknown {
  const access = accessOf(config, rules);
  return isRefusal(access) ? access.message : access;
}

describe("accessOf", () => {
  it("takes what lies in the folder, and for http nothing", () => {
    const files = { certFile: "/etc/cni/net.d/etcd.pem", keyFile: "/etc/cni/net.d/etcd-key.pem" };
    assert.deepEqual(said({ url, ...files }, HOST), { endpoints: [url], ...files });
    assert.deepEqual(said({ url, caFile: "/etc/berth/etcd/a/ca.pem" }, CLUSTER), {
      endpoints: [url],
      caFile: "/etc/berth/etcd/a/ca.pem",
    });
    assert.deepEqual(said({ url: "http://10.0.0.1:2379", ...files, keyFile: "/root/x" }, HOST), {
      endpoints: ["http://10.0.0.1:2379"],
    });
  });

  for (const path of [
    "/etc/shadow",
    "/etc/cni/net.d",
    "/etc/cni/net.d/",
    "/etc/cni/net.d/a/",
    "/etc/cni/net.d/../shadow",
    "/etc/cni/net.d/./a",
    "/etc/cni/net.d//a",
    "/etc/cni/net.dx/a",
    "etcd.pem",
  ]) {
    it(`refuses ${path}`, () => {
      const words = `ipam.etcdConfig.etcdTrustedCAFileFile: ${JSON.stringify(path)} is not in /etc/cni/net.d, from where alone this agent reads them`;
      assert.equal(said({ url, caFile: path }, HOST), words);
    });
  }

  it("asks for a proof in a cluster, from each URL", () => {
    const caFile = "/etc/berth/etcd/ca.pem";
    const open = "http://10.0.0.2:2379";
    assert.match(
      String(said({ url: `${url},${open}`, caFile }, CLUSTER)),
      /etcdURL: http:\/\/10\.0\.0\.2:2379 is not https/,
    );
    assert.match(String(said({ url }, CLUSTER)), /etcdTrustedCAFileFile: is missing/);
    assert.match(String(said({ url, certFile: "/etc/cni/net.d/a" }, HOST)), /go together/);
  });
});
