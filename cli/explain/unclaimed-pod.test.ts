// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Address } from "../../allocator/ip/address.ts";
import { addr } from "../../test/support/fixtures.ts";
import { bound, facts } from "../testing/facts.ts";
import { type PodOptions, podWith } from "../testing/pod-with.ts";
import { diagnosePod } from "./pod-diagnosis.ts";

const LABELLED = {
  name: "shop",
  labels: { "berth.dev/admission": "enabled" },
  annotations: { "berth.dev/pools": "db" },
};

describe("what is said of a pod without a claim", () => {
  it("is stuck if it asks itself, and was never admitted", () => {
    const circumstances = facts(undefined, { key: "", space: LABELLED });
    assert.deepEqual(diagnosePod(podWith({ annotations: { "berth.dev/pools": "db" } }), circumstances), {
      words:
        "asks for a fixed address and has no claim: it was never admitted by Berth's webhook; it cannot start",
      stuck: true,
      next: [
        "look at the webhook configuration and its selectors: kubectl get mutatingwebhookconfiguration berth -o yaml",
        "delete pod shop/mysql-0 and create it again",
      ],
    });
  });

  it("starts with any address where its namespace alone asks and nobody reviewed it, as agents see it", () => {
    const address = addr("10.40.0.5");
    const circumstances = (addresses: readonly Address[]) =>
      facts(undefined, {
        ...{ key: "", space: LABELLED },
        dynamic: {
          addresses: addresses.map((one) => ({ address: one, block: undefined })),
          choice: undefined,
        },
      });
    const pod = podWith({ annotations: {}, phase: "Running" });
    assert.deepEqual(diagnosePod(pod, circumstances([address])), {
      words:
        "asks for no fixed address, and has 10.40.0.5, of its network's own configuration; what its namespace says in berth.dev/pools was not asked for it: it was created before its namespace said so, or while Berth was away (webhook.failurePolicy: Ignore), and no address is kept for it",
      stuck: false,
      next: ["if Berth is to give it an address that is kept, delete the pod and create it again"],
    });
    assert.equal(diagnosePod(podWith({ annotations: {} }), circumstances([])).stuck, true);
    const onHost = facts(undefined, { key: "", space: LABELLED, place: "data" });
    assert.match(diagnosePod(pod, onHost).words, /^asks for a fixed address and has no claim: /);
  });

  it("is not stuck by a namespace's default that has no effect without the label", () => {
    for (const annotations of [
      { "berth.dev/pools": "db" },
      { "cni.projectcalico.org/ipv4pools": '["web"]' },
    ]) {
      const [key] = Object.keys(annotations);
      const unlabelled = facts(undefined, { key: "", space: { ...LABELLED, labels: {}, annotations } });
      assert.deepEqual(diagnosePod(podWith({ annotations: {} }), unlabelled), {
        words: `asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md); what its namespace says in ${key} has no effect with Berth until the namespace has the label berth.dev/admission=enabled`,
        stuck: false,
        next: [
          "if Berth is to give it an address: kubectl label namespace shop berth.dev/admission=enabled, then delete the pod and create it again",
        ],
      });
      const asking = podWith({ annotations: { "berth.dev/families": "IPv4" } });
      assert.equal(diagnosePod(asking, unlabelled).stuck, true);
    }
  });

  it("tells a further interface that was left to its network from the first one", () => {
    const networks = '[{"name":"lan","ips":["10.99.0.90/24"]}]';
    const pod = podWith({ annotations: { "k8s.v1.cni.cncf.io/networks": networks } });
    assert.deepEqual(diagnosePod(pod, facts(undefined, { key: "" })), {
      words:
        "asks for net1 in another system's annotations, which was left to the networks that make it; on eth0 it asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
      stuck: false,
      next: [],
    });
  });

  for (const [what, pod, circumstances, words] of [
    [
      "host network",
      podWith({ spec: { hostNetwork: true } }),
      facts(bound),
      "is none of Berth's business: it is on its host's network, or a mirror pod",
    ],
    [
      "asks for nothing, and is up",
      podWith({ annotations: {}, phase: "Running" }),
      facts(undefined, { key: "" }),
      "asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
    ],
  ] as const) {
    it(`goes on by itself: ${what}`, () => {
      const diagnosis = diagnosePod(pod, circumstances);
      assert.deepEqual([diagnosis.words, diagnosis.stuck], [words, false]);
    });
  }

  it("does not go on by itself when it asks for nothing, has nothing, and a node waits to start it", () => {
    const stuckness = (options: PodOptions) =>
      diagnosePod(podWith({ annotations: {}, ...options }), facts(undefined, { key: "" })).stuck;
    assert.equal(stuckness({}), true);
    assert.equal(stuckness({ node: "" }), false, "it may be on a node later that is served");
    assert.equal(stuckness({ phase: "" }), false, "nobody says so on one host");
  });
});
