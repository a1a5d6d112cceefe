// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import type { Claim } from "../model/claim.ts";
import { type ClaimPlace, describeHolder } from "../model/container-claim.ts";
import { freedBy } from "./freed-by.ts";

const HOSTS: ClaimPlace = { ofContainers: true };
const RELEASE = "berthctl release shop/x";
const identity = (kind: string, over: Partial<Claim["identity"]> = {}): Partial<Claim> => ({
  name: "x",
  identity: { kind, apiVersion: "v1", name: "web", ...over },
});

describe("what frees an address that a claim has", () => {
  for (const [what, claim, words] of [
    ["a pod", identity("Pod", { name: "x" }), "delete pod x"],
    ["a pod without a name", identity("Pod"), "delete its pod"],
    ["one that is known", { ...identity("Pod"), binding: bindingTo("web-1", "") }, "delete pod web-1"],
    ["an ordinal", identity("StatefulSet", { ordinal: 1 }), "scale StatefulSet web down"],
    ["a slot", identity("Deployment", { slot: 1 }), "take it out of the list of Deployment web"],
    ["an index", identity("Job", { ordinal: 1 }), "delete Job web"],
  ] as const) {
    it(`is the end of what it would be made again for: ${what}`, () => {
      assert.equal(freedBy(claimRecord(claim), "shop/x", {}), `${words}, and if its claim stays: ${RELEASE}`);
    });
  }

  it("is the end of a container of hosts that share an etcd, which no pod is", () => {
    const containerID = "3F0d9b6e1c5a77aa";
    const name = "c-3f0d9b6e1c5a-eth0-0123456789abcdef";
    const attachment = attachmentOf(name, { containerID, interface: "eth0", node: "host-a", podUID: "" });
    const its = claimRecord({ ...identity("Pod", { name }), name, status: { attachment } });
    assert.match(
      freedBy(its, "default/x", HOSTS),
      /^stop container 3F0d9b6e1c5a on host host-a, and if its claim/,
    );
    assert.equal(describeHolder(its, HOSTS), "container 3F0d9b6e1c5a, eth0");
    for (const over of [{ podUID: "u1" }, { containerID: "another" }, { interface: "net1" }]) {
      const claim = { ...its, status: { attachment: { ...attachment, ...over } } };
      assert.match(freedBy(claim, "default/x", HOSTS), /^delete pod c-3f0d9b6e1c5a-eth0-/);
      assert.equal(describeHolder(claim, HOSTS), `Pod ${name}`);
    }
  });

  it("is the end of a container that its runtime names, and of a pod of a cluster", () => {
    const its = claimRecord({
      ...identity("Pod", { name: "box" }),
      namespace: "default",
      name: "box",
      status: {},
    });
    assert.match(freedBy(its, "default/box", HOSTS), /^stop container box, and if its claim stays: /);
    assert.equal(describeHolder(its, HOSTS), "container box");
    const pods = { ...its, binding: bindingTo("box", "node-a") };
    assert.match(freedBy(pods, "default/box", HOSTS), /^delete pod box, /);
    assert.equal(
      describeHolder({ ...its, namespace: "shop" }, HOSTS),
      "Pod box",
      "containers are in default",
    );
    assert.equal(describeHolder(its, {}), "Pod box");
  });

  it("is the end of a container whose address was imported, and not the release of what that may still have", () => {
    const name = "c-3f0d9b6e1c5a--0123456789abcdef-10-20-0-70";
    const its = claimRecord({
      ...identity("Pod", { name }),
      ...{ name, handMade: true, addresses: addrs("10.20.0.70") },
    });
    assert.equal(describeHolder(its, HOSTS), "container 3f0d9b6e1c5a");
    assert.equal(
      freedBy(its, "default/x", HOSTS),
      "stop container 3f0d9b6e1c5a, which had it from cni-ipam-etcd, and if it has ended and its claim stays: berthctl release default/x",
    );
    const others: readonly Partial<Claim>[] = [
      { addresses: addrs("10.20.0.71") },
      { addresses: addrs("10.20.0.70", "fd00:20::70") },
      { handMade: false },
      { binding: bindingTo(name, "host-a") },
    ];
    assert.equal(describeHolder(its, {}), `Pod ${name}`, "in a cluster anybody may have called it so");
    assert.equal(freedBy(its, "default/x", {}), "release it with: berthctl release default/x");
    for (const over of others) assert.equal(describeHolder({ ...its, ...over }, HOSTS), `Pod ${name}`);
  });

  it("is its release where nothing makes it again", () => {
    const retained = { since: 1, because: "scaled" } as const;
    const gone: ClaimPlace = { podIsGone: (namespace, name) => `${namespace}/${name}` === "shop/web-1" };
    const its = { ...claimRecord(identity("Pod", { name: "web-1" })), name: "web-1" };
    assert.equal(freedBy(its, "shop/x", gone), `release it with: ${RELEASE}`);
    assert.equal(freedBy(its, "shop/x", {}), `delete pod web-1, and if its claim stays: ${RELEASE}`);
    const up = { ...its, status: { attachment: attachmentOf("web-1") } };
    assert.match(
      freedBy(up, "shop/x", gone),
      /^stop container \S+ of pod web-1, which is deleted, and if its claim stays: /,
      "its container may be up",
    );
    for (const claim of [undefined, claimRecord({ retained }), claimRecord({ handMade: true })])
      assert.equal(freedBy(claim, "shop/x", HOSTS), `release it with: ${RELEASE}`);
  });
});
