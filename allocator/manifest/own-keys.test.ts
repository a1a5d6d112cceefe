// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Carrier, OWN_REQUESTS, strayLabels, unknownKey } from "./own-keys.ts";

const said = (carrier: Carrier, key: string) => unknownKey(carrier, { [key]: "x" })?.message;

describe("a key of Berth's own that is not known", () => {
  const meant: readonly (readonly [Carrier, string, string])[] = [
    ["Pod", "berth.dev/ip", "berth.dev/ips"],
    ["Pod", "berth.dev/IPs", "berth.dev/ips"],
    ["Pod", "Berth.dev/ips", "berth.dev/ips"],
    ["Pod", "BERTH.DEV/POOLS", "berth.dev/pools"],
    ["Pod", "berth.dev/ipAddrs", "berth.dev/ips"],
    ["Pod", "berth.dev/address", "berth.dev/ips"],
    ["Pod", "berth.dev/static-ip", "berth.dev/ips"],
    ["Pod", "berth.dev/pool", "berth.dev/pools"],
    ["Pod", "berth.dev/ippool", "berth.dev/pools"],
    ["Pod", "berth.dev/stiky", "berth.dev/sticky"],
    ["Pod", "berth.dev/family", "berth.dev/families"],
    ["Pod", "berth.dev/when-delete", "berth.dev/when-deleted"],
    ["Namespace", "berth.dev/pool", "berth.dev/pools"],
    ["Namespace", "berth.dev/tll", "berth.dev/ttl"],
  ];
  for (const [carrier, key, other] of meant) {
    it(`is refused on a ${carrier}: ${key} is ${other}`, () => {
      assert.equal(
        said(carrier, key),
        `annotation ${key}: berth knows no such annotation; did you mean ${other}?`,
      );
    });
  }

  it("that resembles none is refused with those that there are", () => {
    const known = OWN_REQUESTS.join(", ");
    assert.equal(
      said("Pod", "berth.dev/colour"),
      `annotation berth.dev/colour: berth knows no such annotation; known here: ${known}`,
    );
    assert.ok((said("Pod", `berth.dev/${"a".repeat(9_000)}`)?.length ?? 0) < 400);
  });

  it("that is another's place is refused with where it belongs", () => {
    const label =
      "annotation berth.dev/admission: it is a label, and does nothing as an annotation; write it under metadata.labels";
    assert.equal(said("Namespace", "berth.dev/admission"), label);
    for (const key of ["berth.dev/ips", "berth.dev/ip"])
      assert.match(
        said("Namespace", key) ?? "",
        /an address belongs to one pod; write berth.dev.ips into the pod/,
      );
    assert.match(
      said("Namespace", "berth.dev/mac") ?? "",
      /a MAC address belongs to one pod; write it into the pod/,
    );
    assert.match(said("Namespace", "berth.dev/claim") ?? "", /berth writes it into pods/);
    assert.match(said("IPClaim", "berth.dev/ips") ?? "", /no annotations of a claim; .* spec/);
    assert.match(said("IPPool", "berth.dev/ttl") ?? "", /no annotations of a pool; .* spec/);
  });

  it("may stay where it was before, whatever it says now", () => {
    const before = { "berth.dev/ip": "10.20.0.51" };
    assert.equal(unknownKey("Pod", { "berth.dev/ip": "10.20.0.52" }, before), undefined);
    assert.equal(
      unknownKey("Pod", { ...before, "berth.dev/pool": "x" }, before)?.details["annotation"],
      "berth.dev/pool",
    );
  });

  it("is none of what Berth writes into pods, and none of other people's", () => {
    for (const key of [...OWN_REQUESTS, "berth.dev/claim", "berth.dev/addresses", "berth.dev/token"]) {
      assert.equal(said("Pod", key), undefined, key);
    }
    for (const key of ["app", "shop.berth.dev/ip", "toString", "berth.development/ip"]) {
      assert.equal(said("Pod", key), undefined, key);
    }
  });
});

describe("labels in Berth's name", () => {
  const none = () => false;

  it("that are annotations in the wrong place, or nearly, are told of, with where they belong", () => {
    const where = "spec.template.metadata.annotations";
    assert.deepEqual(strayLabels({ "berth.dev/ips": "10.20.0.51", app: "x" }, none), [
      "label berth.dev/ips has no effect: it is an annotation; write it under metadata.annotations",
    ]);
    assert.deepEqual(strayLabels({ "berth.dev/pool": "db", "Berth.dev/ips": "x" }, none, where), [
      `label berth.dev/pool has no effect; did you mean the annotation berth.dev/pools? Write it under ${where}`,
      `label Berth.dev/ips has no effect; did you mean the annotation berth.dev/ips? Write it under ${where}`,
    ]);
    assert.deepEqual(strayLabels({ "berth.dev/admision": "enabled" }, none), [
      "berth knows no label berth.dev/admision; did you mean berth.dev/admission?",
    ]);
  });

  it("that Berth or a pool selects by are no mistake, nor what is like nothing", () => {
    const labels = {
      "berth.dev/admission": "enabled",
      "berth.dev/guarded": "true",
      "berth.dev/tier": "edge",
    };
    assert.deepEqual(strayLabels(labels, none), []);
    assert.deepEqual(
      strayLabels({ "berth.dev/pool": "db" }, (key) => key === "berth.dev/pool"),
      [],
    );
  });

  it("are compared with what was meant up to a number, whatever they are like, and counted beyond", () => {
    const many = (name: string, n: number) =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`berth.dev/${name}${i}`, "x"]));
    const like = strayLabels(many("pool", 24_000), none);
    assert.equal(like.length, 17);
    assert.match(like[15] ?? "", /^label berth\.dev\/pool15 has no effect; did you mean/);
    assert.equal(like[16], "23984 more labels begin with berth.dev/, and ask for nothing");
    // those that are like nothing are compared in vain, which costs as much
    assert.deepEqual(strayLabels(many("colour", 16), none), []);
    assert.deepEqual(strayLabels(many("colour", 17), none), [
      "1 more label begins with berth.dev/, and asks for nothing",
    ]);
    assert.deepEqual(
      strayLabels(many("colour", 1_000), (key) => key !== "berth.dev/colour7"),
      [],
      "what pools select by is not counted",
    );
  });
});
