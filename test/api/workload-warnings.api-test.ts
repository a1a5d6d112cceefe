// SPDX-License-Identifier: Apache-2.0
// What `kubectl` says of workloads whose pods would not get what they ask for: a real API server, the chart's webhooks.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Json } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { POOL_OBJECTS } from "./manifests.ts";
import { type ControlPlane, WEBHOOK_USER } from "./plane.ts";
import { type Replicas, startReplicas } from "./replicas.ts";
import { openControlPlane } from "./shared-plane.ts";

const APPS = "apps/v1";
const KINDS: Readonly<Record<string, string>> = {
  ...{ Deployment: APPS, ReplicaSet: APPS, DaemonSet: APPS, ReplicationController: "v1" },
  ...{ Job: "batch/v1", CronJob: "batch/v1" },
};

/** A workload of that kind that the API server takes, whose template has these annotations. */
function asking(kind: string, name: string, annotations: Json): Json {
  const labels = { app: name };
  const containers = [{ name: "main", image: "registry.example/app:1" }];
  const isJob = kind === "Job" || kind === "CronJob";
  const restartPolicy = isJob ? "Never" : "Always";
  const template = { metadata: { labels, annotations }, spec: { restartPolicy, containers } };
  const selector = kind === "ReplicationController" ? labels : { matchLabels: labels };
  const spec = isJob ? { template } : { selector, template };
  const whole = kind === "CronJob" ? { schedule: "@yearly", jobTemplate: { spec } } : spec;
  return { apiVersion: KINDS[kind], kind, metadata: { name, namespace: "shop" }, spec: whole };
}

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("kubectl and workloads whose pods would be refused", () => {
    let plane: ControlPlane;
    let replicas: Replicas;

    before(async () => {
      plane = await openControlPlane([WEBHOOK_USER]);
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, ["berth-system", "shop"]);
      replicas = await startReplicas(plane);
      for (const object of POOL_OBJECTS) assert.equal(await apply(object), "");
    });
    after(async () => {
      await replicas?.close();
      await plane?.close();
    });

    /** What `kubectl apply` says on standard error. */
    async function apply(object: Json): Promise<string> {
      return (await plane.kubectl(["apply", "-f", "-"], { stdin: JSON.stringify(object) })).stderr.trim();
    }

    for (const kind of Object.keys(KINDS)) {
      it(`says of a ${kind} which pools do not serve it, and refuses what none ever will`, async () => {
        const name = kind.toLowerCase();
        const denied = /^Error from server .*"workloads\.berth\.dev" denied the request: /;
        const closed = await apply(asking(kind, name, { "berth.dev/pools": "vault" }));
        assert.match(closed, denied);
        assert.match(closed, /pool "vault" is not open to namespace shop; open to it: "db"$/);
        const family = await apply(asking(kind, name, { "berth.dev/pools": "vault/IPv6" }));
        assert.match(family, denied);
        assert.equal(
          await apply(asking(kind, name, { "berth.dev/pools": "nosuch" })),
          `Warning: the pods of this ${kind} would be refused now: there is no pool "nosuch"; name one of "db", "vault"`,
        );
        assert.equal(await apply(asking(kind, `${name}-right`, { "berth.dev/pools": "db" })), "");
      });
    }
  });
}
