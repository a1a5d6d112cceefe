// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { kindNamed, kindOf, MANAGED } from "./kinds.ts";
import { claimKeyOf, keyOfOperand, keysOfOperands, subjectOf, titleOf } from "./object-ref.ts";

function kind(name: string) {
  const found = kindNamed(name);
  if (found === undefined) throw new TypeError(`${name} is no kind`);
  return found;
}

function refusal(value: unknown): string {
  return isRefusal(value) ? value.message : "";
}

describe("subjectOf", () => {
  it("fills in the namespace of a kind that has one", () => {
    const subject = subjectOf({ kind: kind("pod"), json: { kind: "Pod", metadata: { name: "web" } } });
    assert.deepEqual(subject, {
      kind: kind("pod"),
      namespace: "default",
      name: "web",
      generateName: "",
      json: { kind: "Pod", metadata: { name: "web", namespace: "default" } },
    });
  });

  it("takes a namespace away from a kind that has none", () => {
    const json = { kind: "IPPool", metadata: { name: "db", namespace: "shop" } };
    const subject = subjectOf({ kind: kind("pool"), json });
    assert.ok(!isRefusal(subject));
    assert.deepEqual(subject.json, { kind: "IPPool", metadata: { name: "db" } });
    assert.equal(titleOf(subject), "ippool/db");
  });

  it("lets a pod alone go without a name", () => {
    const json = { metadata: { generateName: "web-", namespace: "shop" } };
    const subject = subjectOf({ kind: kind("pod"), json });
    assert.ok(!isRefusal(subject));
    assert.equal(titleOf(subject), "pod/shop/web-*");
    assert.equal(refusal(subjectOf({ kind: kind("sts"), json })), "metadata.name is missing");
    assert.equal(refusal(subjectOf({ kind: kind("pod"), json: {} })), "metadata.name is missing");
  });

  for (const [metadata, message] of [
    [{ name: "Web" }, '"Web" is no name: lower-case letters, digits, - and ., at most 253'],
    [{ name: "a/b" }, '"a/b" is no name: lower-case letters, digits, - and ., at most 253'],
    [{ name: "a", namespace: "x.y" }, '"x.y" is no namespace: lower-case letters, digits and -, at most 63'],
    [{ generateName: "Web-" }, '"Web-x" is no name: lower-case letters, digits, - and ., at most 253'],
  ] as const) {
    it(`refuses ${JSON.stringify(metadata)}`, () => {
      assert.equal(refusal(subjectOf({ kind: kind("pod"), json: { metadata } })), message);
    });
  }
});

describe("operands", () => {
  it("reads KIND/NAMESPACE/NAME and KIND/NAME, by any name of the kind", () => {
    assert.deepEqual(keyOfOperand("sts/shop/mysql"), {
      kind: kind("StatefulSet"),
      namespace: "shop",
      name: "mysql",
    });
    assert.deepEqual(keyOfOperand("pool/db"), { kind: kind("ippool"), namespace: "", name: "db" });
  });

  for (const [operand, message] of [
    [
      "service/shop/web",
      '"service" is no kind that berth keeps; there are namespace, ippool, ipclaim, statefulset, deployment, pod',
    ],
    ["pod/a/b/c", '"pod/a/b/c" is not of the form pod/[NAMESPACE/]NAME'],
    ["pod//web", '"pod//web" is not of the form pod/[NAMESPACE/]NAME'],
    ["ippool/shop/db", '"ippool/shop/db" is not of the form ippool/NAME'],
    ["pod/shop/Web", '"Web" is no name: lower-case letters, digits, - and ., at most 253'],
  ] as const) {
    it(`refuses ${operand}`, () => {
      assert.equal(refusal(keyOfOperand(operand)), message);
    });
  }

  it("reads a kind and names, as kubectl does, with the namespace in front of a name or beside it", () => {
    const keys = (operands: readonly string[], namespace?: string) =>
      keysOfOperands(operands, namespace).map((key) => (isRefusal(key) ? key.message : titleOf(key)));
    assert.deepEqual(keys(["ippool", "db", "web"]), ["ippool/db", "ippool/web"]);
    assert.deepEqual(keys(["pod", "shop/web-1", "web-2"]), ["pod/shop/web-1", "pod/default/web-2"]);
    assert.deepEqual(keys(["pod/web-1", "sts/bank/db"], "shop"), ["pod/shop/web-1", "statefulset/bank/db"]);
    assert.deepEqual(keys(["pod"]), ["name the pod: pod/[NAMESPACE/]NAME"]);
  });

  it("reads the key of a claim", () => {
    assert.deepEqual(claimKeyOf("shop/mysql-0"), { namespace: "shop", name: "mysql-0" });
    assert.equal(refusal(claimKeyOf("mysql-0")), '"mysql-0" is not of the form [NAMESPACE/]NAME');
    assert.equal(refusal(claimKeyOf("a/b/c")), '"a/b/c" is not of the form [NAMESPACE/]NAME');
  });
});

describe("kinds", () => {
  it("tells another group's kind of the same name apart", () => {
    assert.equal(kindOf("apps/v1", "StatefulSet")?.plural, "statefulsets");
    assert.equal(kindOf("apps.kruise.io/v1beta1", "StatefulSet"), undefined);
    assert.equal(kindOf("v1", "Pod")?.route, "/validate/pods");
  });

  it("has no name twice", () => {
    const names = MANAGED.flatMap((known) => known.names);
    assert.equal(new Set(names).size, names.length);
  });
});
