// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { readArgs } from "./args.ts";
import { isCniError } from "./errors.ts";

const POD = { namespace: "ns", name: "p", uid: "u" };
const PAIRS = [
  "IgnoreUnknown=1",
  "K8S_POD_NAMESPACE=ns",
  "K8S_POD_NAME=p",
  "K8S_POD_INFRA_CONTAINER_ID=c",
  "K8S_POD_UID=u",
];

function messageOf(text: string): string {
  const error = readArgs(text);
  assert.ok(isCniError(error), text);
  assert.equal(error.code, 4);
  return error.msg;
}

describe("CNI_ARGS", () => {
  it("are nothing when empty, whatever the number of separators", () => {
    for (const text of ["", ";", ";;", "IgnoreUnknown=true"])
      assert.deepEqual(readArgs(text), { ips: [], gateways: [] });
  });

  it("say the pod, in any order, because containerd ranges over a map", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(PAIRS, { minLength: PAIRS.length }), (pairs) => {
        assert.deepEqual(readArgs(pairs.join(";")), { ips: [], gateways: [], pod: POD });
      }),
    );
  });

  it("say no pod unless both its names are there", () => {
    assert.deepEqual(readArgs("K8S_POD_NAMESPACE=ns;K8S_POD_UID=u"), { ips: [], gateways: [] });
    for (const text of ["K8S_POD_NAME=p", "K8S_POD_NAME=p;K8S_POD_NAMESPACE="]) {
      assert.deepEqual(readArgs(text), { ips: [], gateways: [], name: "p" });
    }
    assert.deepEqual(readArgs("K8S_POD_NAME=p;K8S_POD_NAMESPACE=ns"), {
      ips: [],
      gateways: [],
      pod: { ...POD, uid: "" },
    });
  });

  it("may say everything twice; the last counts", () => {
    const text = [...PAIRS, ...PAIRS, "IP=10.0.0.1", "IP=10.0.0.2/24", "K8S_POD_NAME=q"].join(";");
    assert.deepEqual(readArgs(text), { ips: ["10.0.0.2/24"], gateways: [], pod: { ...POD, name: "q" } });
  });

  it("take a ; too many, and = in a value", () => {
    assert.deepEqual(readArgs(";IP=10.0.0.1;"), { ips: ["10.0.0.1"], gateways: [] });
    assert.deepEqual(readArgs("X=a=b;IgnoreUnknown=1"), { ips: [], gateways: [] });
  });

  it("have lists of addresses and gateways", () => {
    assert.deepEqual(readArgs("IP=10.0.0.1/24, fd00::1/64,;GATEWAY=10.0.0.254 ,FD00::FE"), {
      ips: ["10.0.0.1/24", "fd00::1/64"],
      gateways: ["10.0.0.254", "fd00::fe"],
    });
    assert.deepEqual(readArgs("IP=;GATEWAY="), { ips: [], gateways: [] });
  });

  it("refuse unknown keys unless told not to, be it behind them; keys are case sensitive", () => {
    assert.equal(messageOf("FOO=BAR;X=y"), 'ARGS: unknown args ["FOO=BAR" "X=y"]');
    assert.equal(messageOf("IgnoreUnknown=0;FOO=BAR"), 'ARGS: unknown args ["FOO=BAR"]');
    assert.equal(messageOf("IgnoreUnknown=1;IgnoreUnknown=false;FOO=BAR"), 'ARGS: unknown args ["FOO=BAR"]');
    assert.equal(messageOf("ip=10.0.0.1"), 'ARGS: unknown args ["ip=10.0.0.1"]');
    for (const yes of ["1", "true", "True", "TRUE"])
      assert.ok(!isCniError(readArgs(`FOO=BAR;IgnoreUnknown=${yes}`)), yes);
  });

  it("refuse what is no pair, no flag, no gateway", () => {
    assert.equal(messageOf("IgnoreUnknown=1;FOO"), 'ARGS: invalid pair "FOO"');
    assert.equal(
      messageOf("IgnoreUnknown=Yes"),
      'ARGS: error parsing value of pair "IgnoreUnknown=Yes": boolean unmarshal error: invalid input yes',
    );
    assert.equal(messageOf("GATEWAY=10.0.0.300"), "CNI_ARGS: invalid gateway address: 10.0.0.300");
  });
});
