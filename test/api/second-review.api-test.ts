// SPDX-License-Identifier: Apache-2.0
// Whether a pod is shown to Berth a second time, behind all mutating webhooks: only if one of them has changed what it asks for (ADR 0046).
import assert from "node:assert/strict";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { itemPath, PODS, POOLS } from "../../kube/api/resource.ts";
import { readHistogram } from "../bench-api/histogram.ts";
import { eventually } from "../support/eventually.ts";
import { poolRecord } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { MUTATING_WEBHOOKS } from "./cluster-resources.ts";
import { change, make, makePod } from "./replica-objects.ts";
import { servingCertificate } from "./serving-certificate.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const NAMESPACE = "shop";
const METRIC = "apiserver_admission_webhook_admission_duration_seconds";
const ASKED = new Set(["pods.berth.dev", "namespace.pods.berth.dev"]);
const REVIEWED = "berth.dev/reviewed";
const STICKY = { "berth.dev/pools": "db", "berth.dev/sticky": "true" };
/** The other webhook does what a pod's annotation of that key says: annotations to merge, null takes one away. */
const ORDER = "other.example/does";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the second review of a pod", () => {
    let cluster: WebhookCluster;
    let other: Server;
    before(async () => {
      cluster = await WebhookCluster.open({
        policies: true,
        prepare: async (admin) => {
          for (const [name, cidr] of Object.entries({ db: "10.20.0.0/24", web: "10.21.0.0/24" }))
            await make(admin, POOLS, { name }, { spec: { ...poolRecord(name, cidr).spec } });
        },
      });
      other = await otherWebhook();
      await registerOther();
    });
    after(async () => {
      other?.close();
      await cluster?.close();
    });

    /** It is asked after Berth, as its name stands behind. */
    async function registerOther(): Promise<void> {
      const { ca } = await servingCertificate();
      const { port } = other.address() as AddressInfo;
      const webhook = {
        name: "pods.other.example",
        clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(ca).toString("base64") },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        failurePolicy: "Fail",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      };
      await new Client(cluster.admin, MUTATING_WEBHOOKS).create({ name: "other" }, { webhooks: [webhook] });
      await eventually("the other webhook is asked", async () => {
        const annotations = { [ORDER]: '{"other.example/was-here":"yes"}' };
        const { metadata } = await makePod(
          cluster.admin,
          { namespace: NAMESPACE, name: "probe" },
          { annotations },
        );
        await cluster.admin.call({
          method: "DELETE",
          path: itemPath(PODS, { namespace: NAMESPACE, name: "probe" }),
        });
        return metadata.annotations?.["other.example/was-here"] === "yes" ? true : undefined;
      });
    }

    /** Reviews by `/validate/pods` of pods that were created, so far. */
    async function seconds(): Promise<number> {
      const { body } = await cluster.admin.call({ method: "GET", path: "/metrics" });
      const isIts = ({ operation, type, name = "" }: Readonly<Record<string, string>>) =>
        operation === "CREATE" && type === "validating" && ASKED.has(name);
      return readHistogram(String(body), METRIC, isIts).count;
    }

    /** The pod, or why it was refused; and how often it was shown a second time. */
    async function created(name: string, annotations: Readonly<Record<string, string>>) {
      const before = await seconds();
      const pod = await makePod(cluster.admin, { namespace: NAMESPACE, name }, { annotations }).catch(
        (error: unknown) => String(error),
      );
      return { pod, reviews: (await seconds()) - before };
    }

    const annotationsOf = ({ pod }: Awaited<ReturnType<typeof created>>) =>
      typeof pod === "string" ? assert.fail(pod) : (pod.metadata.annotations ?? {});

    it("does not take place where nobody has changed what the pod asks for", async () => {
      for (const [name, asked] of Object.entries({
        pooled: STICKY,
        pinned: { "cni.projectcalico.org/ipAddrs": '["10.20.0.9"]' },
        labelled: { ...STICKY, [ORDER]: '{"sidecar.example/status":"injected"}' },
      })) {
        const got = await created(name, asked);
        assert.ok(annotationsOf(got)["berth.dev/claim"] !== undefined);
        assert.equal(got.reviews, 0, name);
      }
    });

    it("takes place where a webhook has changed it, and refuses the pod", async () => {
      for (const [name, does] of Object.entries({
        added: { "berth.dev/ips": "10.20.0.77" },
        changed: { "berth.dev/pools": "web" },
        removed: { "berth.dev/pools": null, "berth.dev/ips": "10.20.0.78" },
        otherwise: { "cni.projectcalico.org/ipAddrs": '["10.20.0.83"]' },
        covered: { "berth.dev/pools": "web", [REVIEWED]: null },
        claimed: { "berth.dev/claim": "pooled" },
        unaddressed: { "berth.dev/addresses": null },
        lined: { "berth.dev/pools": "db\nberth.dev/sticky=true" }, // what follows it in the lines that were reviewed
      })) {
        const { pod, reviews } = await created(name, { ...STICKY, [ORDER]: JSON.stringify(does) });
        assert.match(String(pod), /pods.berth.dev" denied the request: .*(admission|pool)/, name);
        assert.equal(reviews, 1, name);
      }
    });

    it("takes place where a webhook has taken a request away", async () => {
      const does = JSON.stringify({ "berth.dev/sticky": null });
      const { reviews } = await created("shorter", { ...STICKY, [ORDER]: does });
      assert.equal(reviews, 1);
    });

    it("leaves it to the policy to refuse a pod that a webhook has made ask", async () => {
      const { pod } = await created("late", { [ORDER]: '{"berth.dev/ips":"10.20.0.80"}' });
      assert.match(String(pod), /no claim was made for it/); // the policy comes first
    });

    it("is nothing that a pod can do without by what it brings along", async () => {
      const forged = "berth.dev/ips=10.20.0.81";
      const got = await created("forger", { ...STICKY, [REVIEWED]: forged });
      assert.match(
        annotationsOf(got)[REVIEWED] ?? "",
        /^berth.dev\/pools=db\nberth.dev\/sticky=true\nberth.dev\/claim=forger\nberth.dev\/addresses=10.20.0.[0-9]+$/,
      );
      const bare = await created("bare", { [REVIEWED]: forged });
      assert.equal(annotationsOf(bare)[REVIEWED], undefined);
      const late = await created("forged-late", {
        [REVIEWED]: forged,
        [ORDER]: '{"berth.dev/ips":"10.20.0.81"}',
      });
      assert.match(String(late.pod), /no claim was made for it/);
    });

    it("takes place where a value has lines of its own", async () => {
      const got = await created("lines", {
        ...STICKY,
        "cni.projectcalico.org/ipAddrs": '[\n"10.20.0.82"\n]',
      });
      assert.equal(annotationsOf(got)[REVIEWED], undefined);
      assert.equal(got.reviews, 1);
    });

    it("leaves what was reviewed in the pod for its life", async () => {
      const body = { metadata: { annotations: { [REVIEWED]: null } } };
      const place = { namespace: NAMESPACE, name: "pooled" };
      await assert.rejects(change(cluster.admin, PODS, place, body), /berth.dev\/reviewed/);
    });
  });
}

async function otherWebhook(): Promise<Server> {
  const { cert, key } = await servingCertificate();
  const server = createServer({ cert, key }, (request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      const review = JSON.parse(text);
      const { annotations = {} } = review.request.object.metadata;
      const does = Object.entries(JSON.parse(annotations[ORDER] ?? "{}"));
      const path = (name: string) =>
        `/metadata/annotations/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const ops = does.flatMap(([name, value]) => {
        if (value !== null) return [{ op: "add", path: path(name), value }];
        return name in annotations ? [{ op: "remove", path: path(name) }] : [];
      });
      const patch = { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(ops)).toString("base64") };
      const answer = { uid: review.request.uid, allowed: true, ...(ops.length === 0 ? {} : patch) };
      const { apiVersion, kind } = review;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ apiVersion, kind, response: answer }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
