// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { granted } from "../../test/support/fixtures.ts";
import { fencedAndReady, missingParts } from "./installation.ts";

type Json = Readonly<Record<string, unknown>>;

function worldOf(all: readonly Json[]) {
  const objects = all.map((one) => granted(readObject(one)));
  return {
    objects: async (kind: string) => objects.filter((one) => one.kind === kind),
    object: async (kind: string, namespace: string, name: string) =>
      objects.find(
        (one) => one.kind === kind && one.metadata.namespace === namespace && one.metadata.name === name,
      ),
  };
}

const CLOSED = {
  objects: async () => {
    throw new BerthError("STORE_READ_ONLY", "no");
  },
  object: async () => {
    throw new BerthError("STORE_READ_ONLY", "no");
  },
};

function part(kind: string, component: string, over: Json = {}): Json {
  const labels = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": component };
  return { kind, metadata: { namespace: "berth-system", name: `berth-${component}`, labels }, ...over };
}

function node(name: string, status: string, over: Json = {}, spec: Json = {}): Json {
  const conditions = [{ type: "Ready", status }];
  return { kind: "Node", metadata: { name, ...over }, spec, status: { conditions } };
}

describe("what check says of Berth itself", () => {
  it("names what is not in the cluster, and nothing that it may not see", async () => {
    const webhook = part("MutatingWebhookConfiguration", "webhook");
    const agents = part("DaemonSet", "agent");
    const subjects = async (...all: readonly Json[]) =>
      (await missingParts(worldOf(all))).map(({ subject }) => subject);
    assert.deepEqual(await subjects(), ["webhook", "agent"]);
    assert.deepEqual(await subjects(webhook), ["agent"]);
    assert.deepEqual(await subjects(agents, part("DaemonSet", "other")), ["webhook"]);
    assert.deepEqual(await subjects(webhook, agents), []);
    assert.deepEqual(await missingParts(CLOSED), []);
  });
});

describe("what check says of Berth's own pods", () => {
  const service = { namespace: "berth-system", name: "berth-webhook" };
  const webhook = part("MutatingWebhookConfiguration", "webhook", {
    webhooks: [{ clientConfig: { service } }],
  });
  const agents = (numberReady: number) =>
    part("DaemonSet", "agent", { status: { desiredNumberScheduled: 2, numberReady } });
  const replicas = (status: Json) => part("Deployment", "webhook", { status });
  const said = async (...all: readonly Json[]) =>
    (await missingParts(worldOf([webhook, ...all]))).map(({ kind, message }) => [kind, message]);

  it("tells of a webhook without a ready replica", async () => {
    const words =
      "no replica of the webhook is ready: pods that ask for an address are not reviewed, and no claim is bound; see kubectl -n berth-system describe pods";
    assert.deepEqual(await said(agents(2), replicas({})), [["not-ready", words]]);
    assert.deepEqual(await said(agents(2), replicas({ replicas: 2, readyReplicas: 1 })), []);
  });

  it("tells of nodes without a ready agent", async () => {
    const words =
      "the agent is ready on 1 of 2 nodes: on the others no pod in a network of Berth's starts; see kubectl -n berth-system get pods -o wide";
    assert.deepEqual(await said(agents(1), replicas({ readyReplicas: 2 })), [["not-ready", words]]);
  });

  it("says nothing of a webhook that has no Deployment, as one that was started by hand", async () => {
    assert.deepEqual(await said(agents(2)), []);
  });
});

describe("what check says of fenced nodes", () => {
  it("names those that are well, with what takes the fence away", async () => {
    const fenced = { annotations: { "berth.dev/fenced": "true" } };
    const taint = { key: "node.kubernetes.io/out-of-service", effect: "NoExecute" };
    const found = await fencedAndReady(
      worldOf([
        node("a", "True", fenced),
        node("b", "False", fenced),
        node("c", "True", {}, { taints: [taint] }),
        node("d", "True"),
      ]),
    );
    assert.deepEqual(
      found?.map(({ message }) => message.split(": ").at(-1)),
      [
        "kubectl annotate node a berth.dev/fenced-",
        "kubectl taint node c node.kubernetes.io/out-of-service-",
      ],
    );
    assert.equal(await fencedAndReady(CLOSED), undefined);
  });
});
