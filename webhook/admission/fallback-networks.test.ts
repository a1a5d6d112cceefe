// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  annotationsOf,
  applied,
  deploymentPod,
  type Json,
  ownedBy,
  pod,
} from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { ANY, addressesOf, given, occupied, TAKEN } from "../testing/taken-address.ts";

describe("a pod that takes any address if the one it names is taken", () => {
  it("has it in Multus' list, too, which says to the plugin what it is to have", async () => {
    await using world = await occupied();
    const key = "k8s.v1.cni.cncf.io/networks";
    const networks = [{ name: "lan", ips: [`${TAKEN}/24`] }, { name: "other" }];
    const annotations = { [key]: JSON.stringify(networks), ...ANY };
    const made = await createPod(world, pod("b", { annotations }), "b");
    const [, got = ""] = /^(\S+)@net1$/.exec(given(made)) ?? [];
    assert.match(got, /^10\.20\.0\.(?!70$)\d+$/);
    const [lan, other] = JSON.parse(annotationsOf(made)[key] ?? "[]");
    assert.deepEqual(lan.ips, [`${got}/24`]);
    assert.deepEqual(other, { name: "other" });
    assert.equal(annotationsOf(made)["berth.dev/ips"], `${TAKEN}@net1`, "what it asks for stays");
    const claim = await world.realStore.get("claim", "shop/b");
    assert.deepEqual(claim?.record.request.addresses, [TAKEN]);
  });

  it("has it in Multus' list, too, where the pods of its workload share a list, or its index says which claim it has", async () => {
    await using world = await occupied();
    const key = "k8s.v1.cni.cncf.io/networks";
    const networks = JSON.stringify([{ name: "lan", ips: [`${TAKEN}/24`] }]);
    const annotations = { [key]: networks, ...ANY };
    const index = { "batch.kubernetes.io/job-completion-index": "0" };
    const owner = ownedBy("Job", "train", "batch/v1");
    const ofJob = { generateName: "train-0-", annotations: { ...annotations, ...index }, owner };
    for (const [object, claim] of [
      [deploymentPod("web", { annotations }), "web-slot-0"],
      [pod("", ofJob), "train-0"],
    ] as const) {
      const told =
        /10\.20\.0\.70 is not to be had now; by berth\.dev\/fallback this pod has (10\.20\.0\.(?!70\b)\d+) instead/;
      const rehearsal = await send(world, "/mutate/pods", object, { dryRun: true });
      assert.match(rehearsal.warnings?.join() ?? "", told);
      const review = await send(world, "/mutate/pods", object);
      assert.match(review.warnings?.join() ?? "", told);
      const made = applied(object, review);
      const ready = { ...made, metadata: { ...(made["metadata"] as Json), name: `${claim}-x1`, uid: "x1" } };
      assert.equal((await send(world, "/validate/pods", ready)).allowed, true);
      const [, got = ""] = /^(\S+)@net1$/.exec(given(made)) ?? [];
      assert.deepEqual(JSON.parse(annotationsOf(made)[key] ?? "[]")[0].ips, [`${got}/24`]);
      assert.equal(annotationsOf(made)["berth.dev/ips"], `${TAKEN}@net1`);
      assert.equal(await addressesOf(world, claim), got);
    }
  });

  it("has it, too, where other words say the address that it named beside Multus' list", async () => {
    await using world = await occupied();
    const key = "k8s.v1.cni.cncf.io/networks";
    const networks = JSON.stringify([{ name: "lan", ips: [`${TAKEN}/24`] }]);
    for (const [name, more] of [
      ["b", { "berth.dev/ips": `${TAKEN}@net1` }],
      ["c", { "lan.shop.kubernetes.io/ip_address": TAKEN }],
    ] as const) {
      const made = await createPod(
        world,
        pod(name, { annotations: { [key]: networks, ...more, ...ANY } }),
        name,
      );
      assert.match(given(made), /^10\.20\.0\.(?!70@)\d+@net1$/);
    }
  });

  it("is refused where other words say another address of the interface than Multus' list, with both named", async () => {
    await using world = await occupied();
    const key = "k8s.v1.cni.cncf.io/networks";
    for (const ip of ["fd00:99::7/24", "10.20.0.81/24", `${TAKEN}/24`]) {
      const networks = JSON.stringify([{ name: "lan", ips: [ip] }]);
      for (const more of [
        { "berth.dev/ips": "10.20.0.80@net1" },
        { "lan.shop.kubernetes.io/ip_address": "10.20.0.80" },
      ]) {
        const words = await admitPod(world, pod("b", { annotations: { [key]: networks, ...more, ...ANY } }));
        const [other = ""] = Object.keys(more);
        assert.match(words, /^REQUEST_INVALID: annotation \S+: it disagrees with \S+; keep one of the two$/);
        for (const one of [key, other]) assert.ok(words.includes(one), words);
        assert.equal(await world.realStore.get("claim", "shop/b"), undefined);
      }
    }
  });

  it("asks for what its other words say when a copy of it has what another pod was given in Multus' list", async () => {
    await using world = await occupied();
    const key = "k8s.v1.cni.cncf.io/networks";
    const networks = JSON.stringify([{ name: "lan", ips: ["10.20.0.90/24"] }]);
    const words = {
      "lan.shop.kubernetes.io/ip_address": "10.20.0.80",
      "berth.dev/addresses": "10.20.0.90@net1",
    };
    const object = pod("b", { annotations: { [key]: networks, ...words, ...ANY } });
    const made = await createPod(world, object, "b");
    assert.equal(given(made), "10.20.0.80@net1");
    assert.match(annotationsOf(made)[key] ?? "", /10\.20\.0\.80\/24/);
    assert.equal(annotationsOf(made)["berth.dev/ips"], undefined);
  });
});
