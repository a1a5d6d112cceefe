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
  return { objects: async (kind: string) => objects.filter((one) => one.kind === kind) };
}

const CLOSED = {
  objects: async () => {
    throw new BerthError("STORE_READ_ONLY", "no");
  },
};

function part(kind: string, component: string): Json {
  const labels = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": component };
  return { kind, metadata: { name: "x", labels } };
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
