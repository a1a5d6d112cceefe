// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SYSTEMS } from "../model/dialect.ts";
import { ANNOTATION_FORMATS } from "./annotations.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { READ_ROWS } from "./dialects.ts";
import {
  FOREIGN_ROWS,
  foreignDefaults,
  foreignRequests,
  judgeForeign,
  NAMESPACE_ROWS,
} from "./foreign-requests.ts";
import { NETWORKS } from "./network-attachments.ts";

const INSTEAD: Readonly<Record<string, string>> = {
  addresses: "; write berth.dev/ips for an address of berth's",
  pools: "; write berth.dev/pools for an address of berth's",
};

describe("what a pod asks of other systems", () => {
  it("is told by name, in a line that the API server passes on whole, with what to do", () => {
    for (const { key, system, example, refusal, beside } of FOREIGN_ROWS) {
      const reported = foreignRequests({ [key]: example });
      const why = refusal === undefined ? `, and berth does not read it: ${beside}` : `: ${refusal}`;
      const line = `annotation ${key} is ${SYSTEMS[system]}'s${why}`;
      assert.deepEqual(
        [reported.asks, reported.beside],
        refusal === undefined ? [[], [line]] : [[line], []],
        key,
      );
      assert.ok(line.length <= 256, key);
      const isReadOtherwise = DIALECT_ROWS.some((row) => row.key === key && row.read !== undefined);
      assert.equal(
        ANNOTATION_FORMATS.some((format) => format.key === key),
        isReadOtherwise,
        key,
      );
    }
  });

  it("is told of what would be read, were it not that the administrator says none", () => {
    for (const { key: row, system, on, asks, example, containing } of READ_ROWS) {
      if (containing !== undefined) continue;
      const key = row.replace("<nad>", "macvlan").replace("<namespace>", "default");
      const reported = on[0] === "pod" ? foreignRequests : foreignDefaults;
      assert.deepEqual(reported({ [key]: example }), { asks: [], beside: [] }, key);
      const what = INSTEAD[asks ?? ""] ?? "";
      const said = reported({ [key]: example }, { [system]: "none" });
      assert.deepEqual(asks === "mac" ? said.beside : said.asks, [
        `annotation ${key} is ${SYSTEMS[system]}'s, and berth does not read it${what}`,
      ]);
    }
  });

  it("is told, and not refused, what a system that is not read says beside berth's own request", () => {
    const both = { "berth.dev/ips": "10.0.0.1", "cni.projectcalico.org/ipAddrs": '["10.0.0.1"]' };
    assert.deepEqual(foreignRequests(both, { calico: "none" }), {
      asks: [],
      beside: [
        "annotation cni.projectcalico.org/ipAddrs is Calico's, and berth does not read it: the pod has what berth's own annotations ask for",
      ],
    });
    assert.equal(foreignRequests({ ...both, "berth.dev/ips": "" }, { calico: "none" }).asks.length, 1);
  });

  it("is told of kube-ovn's further interfaces, whatever they are called", () => {
    const none = { kubeOvn: "none" } as const;
    for (const key of ["macvlan.default.kubernetes.io/ip_address", "a.b.kubernetes.io/ip_pool.net1"])
      assert.equal(foreignRequests({ [key]: "10.0.0.1" }, none).asks.length, 1, key);
    assert.equal(foreignRequests({ "a.b.kubernetes.io/mac_address.net1": "x" }, none).beside.length, 1);
    for (const key of [
      "node.kubernetes.io/ip_addressing",
      "node.kubernetes.io/ip_address",
      "a.b.kubernetes.io/ip",
    ])
      assert.deepEqual(foreignRequests({ [key]: "x", app: "a" }, none).asks, [], key);
  });

  it("is told of Multus' networks only if they have addresses", () => {
    const reported = (value: string) => foreignRequests({ [NETWORKS]: value }, { multus: "none" }).asks;
    assert.match(
      reported('[{"name":"a","ips":["10.0.0.1/24"]}]').join(),
      /Multus's, and berth does not read it; write berth\.dev\/ips/,
    );
    for (const value of [
      "a, b/c@net1",
      '[{"name":"a"}]',
      '[{"name":"ips"}]',
      "[",
      '[{"name":"a","ips":[]}]',
    ]) {
      assert.deepEqual(reported(value), [], value);
    }
  });

  it("is told of what is for pods and stands on a namespace, but not of what its system writes there", () => {
    const rows = NAMESPACE_ROWS.filter(({ on }) => !on.includes("namespace"));
    assert.ok(rows.some(({ key }) => key === "networking.alibaba.com/specified-network") && rows.length > 10);
    for (const { key: row, system, asks, example, refusal } of rows) {
      const key = row.replace("<nad>", "lan").replace("<namespace>", "shop");
      const reported = foreignDefaults({ [key]: example });
      const [line = "", ...others] = [...reported.asks, ...reported.beside];
      assert.deepEqual(others, [], key);
      assert.ok(line.startsWith(`annotation ${key} is ${SYSTEMS[system]}'s`) && line.length <= 256, line);
      assert.equal(
        reported.asks.length,
        (asks === undefined && refusal === undefined) || asks === "mac" ? 0 : 1,
        key,
      );
    }
    for (const key of ["ovn.kubernetes.io/logical_switch", "ovn.kubernetes.io/ip_pool", "app"])
      assert.deepEqual(foreignDefaults({ [key]: "x" }), { asks: [], beside: [] }, key);
  });

  it("is a warning, a refusal or nothing, as the administrator says; what asks for no address is never refused", () => {
    const asking = foreignRequests({ "cni.projectcalico.org/ipAddrsNoIpam": '["10.0.0.1"]' });
    const words =
      "annotation cni.projectcalico.org/ipAddrsNoIpam is Calico's: berth gives no address that no pool has; put it into a pool and write berth.dev/ips";
    assert.deepEqual(judgeForeign(asking, "warn"), [words]);
    assert.deepEqual(judgeForeign(asking, "ignore"), []);
    assert.deepEqual(judgeForeign({ asks: [], beside: ["x"] }, "refuse"), ["x"]);
    const refused = judgeForeign(asking, "refuse");
    assert.equal("message" in refused && refused.message, `${words}, or remove it`);
  });
});
