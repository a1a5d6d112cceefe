// SPDX-License-Identifier: Apache-2.0
// What `kubectl` says of workloads whose pods would not get what they ask for: a real API server, the chart's webhooks.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject, workload } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { kubectlOn } from "./kubectl-calls.ts";
import { listItems } from "./list-items.ts";
import { POOL_OBJECTS, statefulSet } from "./manifests.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

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

/** For one kubectl, which takes a quarter of a second of a processor to start: it warns as it goes, and says at its end what was refused. */
function together(items: readonly Json[]): Json {
  return { apiVersion: "v1", kind: "List", items };
}

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("kubectl and workloads whose pods would be refused", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open();
      for (const object of POOL_OBJECTS) assert.equal(await apply(object), "");
    });
    after(() => cluster?.close());

    const { kubectl, apply } = kubectlOn(() => cluster.plane);

    async function claims(): Promise<readonly string[]> {
      const items = await listItems(new Client(cluster.admin, CLAIMS), { namespace: "shop" });
      return items.map(({ metadata }) => metadata.name);
    }

    for (const kind of Object.keys(KINDS)) {
      it(`says of a ${kind} which pools do not serve it, and refuses what none ever will`, async () => {
        const name = kind.toLowerCase();
        const denied = /^Error from server .*"workloads\.berth\.dev" denied the request: /;
        const said = await apply(
          together([
            asking(kind, `${name}-closed`, { "berth.dev/pools": "vault" }),
            asking(kind, `${name}-family`, { "berth.dev/pools": "vault/IPv6" }),
            asking(kind, name, { "berth.dev/pools": "nosuch" }),
            asking(kind, `${name}-right`, { "berth.dev/pools": "db" }),
          ]),
        );
        const [warning, closed = "", family = "", ...more] = said.split("\n");
        assert.equal(
          warning,
          `Warning: the pods of this ${kind} would be refused now: there is no pool "nosuch"; name one of "db"`,
        );
        assert.match(closed, denied);
        assert.match(closed, /pool "vault" is not open to namespace shop; open to it: "db"$/);
        assert.match(family, denied);
        assert.deepEqual(more, []);
      });
    }

    it("hears where an annotation belongs that stands on the workload itself", async () => {
      const own = { "cni.projectcalico.org/ipAddrs": '["10.20.0.90"]' };
      const objects = Object.keys(KINDS).map((kind) => {
        const object = asking(kind, `${kind.toLowerCase()}-own`, {});
        return { ...object, metadata: { ...(object["metadata"] as Json), annotations: own } };
      });
      const warnings = (await apply(together(objects))).split("\n");
      assert.equal(warnings.length, objects.length, warnings.join());
      for (const [n, kind] of Object.keys(KINDS).entries())
        assert.match(
          warnings[n] ?? "",
          new RegExp(
            `^Warning: annotation cni\\.projectcalico\\.org/ipAddrs on the ${kind} itself has no effect; move it to spec\\..*template\\.metadata\\.annotations$`,
          ),
        );
    });

    it("hears where an annotation belongs that stands on the Jobs of a CronJob", async () => {
      for (const [n, key] of ["berth.dev/ips", "berth.dev/ipz"].entries()) {
        const object = asking("CronJob", `jobs-${n}`, {});
        const spec = object["spec"] as { readonly jobTemplate: Json };
        const jobTemplate = { ...spec.jobTemplate, metadata: { annotations: { [key]: "10.20.0.90" } } };
        assert.match(
          await apply({ ...object, spec: { ...spec, jobTemplate } }),
          /^Warning: annotation berth\.dev\/ip.* has no effect; move it to spec\.jobTemplate\.spec\.template\.metadata\.annotations\)?$/,
        );
      }
    });

    it("hears that another system's annotation of pods does nothing to Berth on a namespace", async () => {
      const key = "networking.alibaba.com/specified-network";
      const { stderr } = await kubectl(["annotate", "namespace", "shop", `${key}=underlay`]);
      assert.equal(
        stderr.trim(),
        `Warning: annotation ${key} is HybridNet's, and berth reads it on pods and templates alone, not on a namespace; write berth.dev/pools here, or it into them`,
      );
    });

    it("hears of a request among the labels where it belongs: on a pod, a workload, a template, a namespace", async () => {
      const words = (where = "metadata.annotations") =>
        `Warning: label berth.dev/pools has no effect: it is an annotation; write it under ${where}`;
      const labels = { "berth.dev/pools": "db" };
      assert.equal(await apply(pod("labelled", { labels })), words());
      assert.equal(await apply(pod("unlabelled")), "");
      const label = async (what: string) =>
        (await kubectl(["label", what, "-n", "shop", "berth.dev/pools=db"])).stderr.trim();
      assert.equal(await label("pod/unlabelled"), words());
      assert.equal(await label("namespace/shop"), words());
      for (const kind of Object.keys(KINDS)) {
        const plain = asking(kind, `${kind.toLowerCase()}-labelled`, {});
        const metadata = { ...(plain["metadata"] as Json), labels };
        const template = kind === "CronJob" ? "spec.jobTemplate.spec.template" : "spec.template";
        assert.equal(await apply({ ...plain, metadata }), words(`${template}.metadata.annotations`), kind);
      }
      const within = workload("Deployment", "labelled", { labels: { app: "labelled", ...labels } });
      const spec = within["spec"] as { readonly template: Json };
      const containers = [{ name: "main", image: "registry.example/app:1" }];
      const selector = { matchLabels: { app: "labelled" } };
      const template = { ...spec.template, spec: { containers } };
      assert.equal(await apply({ ...within, spec: { selector, template } }), words());
    });

    it("hears nothing of labels that Berth or a pool selects by", async () => {
      const podSelector = { matchLabels: { "berth.dev/pool": "edge" } };
      const edge = poolObject("edge", { ranges: [{ cidr: "10.60.0.0/24" }], podSelector, blockSize: {} });
      assert.equal(await apply(edge), "");
      const labels = { "berth.dev/pool": "edge", "berth.dev/tier": "x" };
      await eventually("the pool is known", async () => {
        const reported = await apply(pod("edge", { labels }));
        await kubectl(["delete", "pod", "edge", "-n", "shop", "--force", "--grace-period=0"]);
        return reported === "" ? true : undefined;
      });
      const { stderr } = await kubectl(["label", "namespace", "shop", "berth.dev/guarded=true"]);
      assert.doesNotMatch(stderr, /guarded/);
    });

    /** What `kubectl scale` says on standard error. */
    async function scale(what: string, replicas: number, ...flags: readonly string[]): Promise<string> {
      const ended = await kubectl(["scale", what, `--replicas=${replicas}`, "-n", "shop", ...flags]);
      assert.equal(ended.rc, 0, ended.stderr);
      return ended.stderr.trim();
    }

    it("hears of kubectl scale what is kept and until when, and which pods are refused", async () => {
      const list = { "berth.dev/ips": "10.20.0.80-10.20.0.82" };
      assert.equal(await apply(statefulSet("mysql", 3, list)), "");
      await eventually("the ordinals are reserved", async () => {
        return (await claims()).filter((name) => name.startsWith("mysql-")).length === 3 || undefined;
      });
      const kept = (n: number) =>
        `Warning: mysql-${n} keeps 10.20.0.8${n} for 720h after its pod is gone; to give it back then: berthctl release shop/mysql-${n}`;
      const words = [kept(1), kept(2)].join("\n");
      const dry = "--dry-run=server";
      assert.equal(
        await eventually("it is known", async () => (await scale("sts/mysql", 1, dry)) || undefined),
        words,
      );
      const autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
      const masters = ["--as-group=system:masters", `--as=${autoscaler}`];
      assert.equal(await scale("sts/mysql", 1, dry, ...masters), "", "nobody reads it");
      assert.equal(await scale("sts/mysql", 1), words);
      assert.equal(
        await scale("sts/mysql", 4),
        "Warning: the list has 3 entries, for ordinals 0 to 2, and none for ordinal 3; add an entry or lower replicas; until then the pods without an entry are refused",
      );
      assert.equal(await scale("deployment/deployment-right", 7), "");
    });

    it("hears what is kept when its template asks for no address any more", async () => {
      assert.equal(await apply(statefulSet("gone", 1, { "berth.dev/ips": "10.20.0.95" })), "");
      await eventually("the ordinal is reserved", async () => {
        return (await claims()).includes("gone-0") || undefined;
      });
      assert.equal(
        await apply(statefulSet("gone", 1, {})),
        "Warning: gone-0 keeps 10.20.0.95 until its pod is created again, which asks for no address of berth",
      );
      const kinds = ["Deployment", "ReplicaSet", "DaemonSet", "ReplicationController", "CronJob"];
      const all = (annotations: Json) =>
        apply(together(kinds.map((kind) => asking(kind, `${kind.toLowerCase()}-gone`, annotations))));
      assert.equal(await all({ "berth.dev/pools": "db" }), "");
      assert.deepEqual(
        (await all({})).split("\n"),
        kinds.map(
          (kind) =>
            `Warning: the next pods of this ${kind} ask for no address of berth; those that are there keep theirs until they are gone`,
        ),
      );
      assert.equal(await all({}), "", "what asks for nothing is not looked at");
    });

    it("scales at once while the webhook is away", async () => {
      const [replica] = cluster.replicas.all;
      assert.ok(replica);
      await replica.process.stop("SIGKILL");
      assert.equal(await scale("sts/mysql", 3), "");
      replica.process.start();
      await cluster.replicas.ready(replica);
    });
  });
}
