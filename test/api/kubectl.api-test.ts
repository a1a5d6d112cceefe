// SPDX-License-Identifier: Apache-2.0
// What people see who use kubectl, with the webhook as a process of its own behind a real API server.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, type KubeItem, PODS, RESERVATIONS, type Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import {
  annotationsOf,
  claimObject,
  deploymentPod,
  type Json,
  pod,
  statefulPod,
} from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { kubectlOn } from "./kubectl-calls.ts";
import { asking, refusalCases } from "./kubectl-refusals.ts";
import { POOL_OBJECTS, statefulSet } from "./manifests.ts";
import { requestCounts } from "./request-counts.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const PIN = { "berth.dev/ips": "10.20.0.70" };
const WRITES = ["POST", "PUT", "PATCH", "DELETE"];

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("kubectl and the webhook", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open({ namespaces: ["shop", "other", "opted"] });
      for (const object of POOL_OBJECTS) assert.equal(await apply(object), "");
    });
    after(() => cluster?.close());

    const people = kubectlOn(() => cluster.plane);
    const { kubectl, apply, create, difference, get, count, addressesOf } = people;

    it("applies a pinned pod, a dual-stack one and a sticky one, whose claims are there when it returns", async () => {
      assert.equal(await apply(pod("licence", { annotations: PIN })), "");
      assert.equal(await addressesOf("licence"), "10.20.0.70");
      assert.deepEqual(claimOf(await get(CLAIMS, "licence")), {
        addresses: ["10.20.0.70"],
        identity: "Pod licence",
      });
      assert.equal(await apply(asking("dual", "10.20.0.71,fd00:20::71")), "");
      assert.equal(await addressesOf("dual"), "10.20.0.71,fd00:20::71");
      await get(RESERVATIONS, "fd00-0020-0000-0000-0000-0000-0000-0071");
      assert.equal(await apply(pod("sticky", { annotations: { "berth.dev/sticky": "true" } })), "");
      const sticky = await addressesOf("sticky");
      assert.match(sticky ?? "", /^10\.20\.0\.\d+,fd00:20::/);
      await kubectl(["delete", "pod", "sticky", "-n", "shop", "--force", "--grace-period=0"]);
      assert.equal(await apply(pod("sticky", { annotations: { "berth.dev/sticky": "true" } })), "");
      assert.equal(await addressesOf("sticky"), sticky);
      const listed = await kubectl(["get", "ipclaims", "-n", "shop"]);
      assert.match(listed.stdout, /^licence .*\["10\.20\.0\.70"\]/m);
    });

    it("applies a pinned StatefulSet, whose ordinals have their addresses before and after their pods", async () => {
      const list = { "berth.dev/ips": "10.20.0.80;10.20.0.81" };
      assert.equal(await apply(statefulSet("mysql", 2, list)), "");
      const claim = (name: string) => async () => {
        const found = await new Client(cluster.admin, CLAIMS).get({ namespace: "shop", name });
        return found === undefined ? undefined : claimOf(found).addresses;
      };
      assert.deepEqual(await eventually("mysql-1 is reserved", claim("mysql-1")), ["10.20.0.81"]);
      for (const ordinal of [1, 0]) {
        assert.equal(
          await create(statefulPod("mysql", ordinal, { annotations: list })),
          `pod/mysql-${ordinal}`,
        );
        assert.equal(await addressesOf(`mysql-${ordinal}`), `10.20.0.8${ordinal}`);
      }
    });

    refusalCases(people);

    it("rehearses with --dry-run=server and kubectl diff, and writes nothing", async () => {
      const objects = [
        asking("maybe", "10.20.0.95"),
        pod("perhaps", { annotations: { "berth.dev/pools": "db" } }),
        deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.96;10.20.0.97" } }),
        statefulSet("set", 1, { "berth.dev/ips": "10.20.0.98" }),
      ];
      const records = async () => [await count(CLAIMS), await count(RESERVATIONS), await count(PODS)];
      const written = async () => {
        const counts = await requestCounts(cluster.admin);
        // not the status of claims: it follows theirs of before, seconds later
        const of = ({ plural: resource }: Resource) =>
          WRITES.reduce((sum, verb) => sum + counts({ resource, verb, subresource: "" }), 0);
        return [of(CLAIMS), of(RESERVATIONS)];
      };
      const before = [await records(), await written()];
      const [maybe, perhaps, web, set] = objects as [Json, Json, Json, Json];
      assert.equal(
        await apply(maybe, "--dry-run=server"),
        "Warning: this pod would get 10.20.0.95 from pool db",
      );
      assert.match(
        await apply(perhaps, "--dry-run=server"),
        /^Warning: this pod would get 10\.20\.0\.\d+ from pool db and fd00:20::[0-9a-f:]+ from pool db$/,
      );
      assert.match(await create(web, "--dry-run=server"), /^pod\/web-5d9c7b-/);
      assert.equal(await apply(set, "--dry-run=server"), "Warning: set-0 would get 10.20.0.98 from pool db");
      const diff = await difference(maybe);
      assert.equal(diff.rc, 1, diff.stderr);
      assert.match(diff.stdout, /^\+ +berth\.dev\/ips: 10\.20\.0\.95$/m);
      assert.match(
        await apply(pod("late", { annotations: PIN }), "--dry-run=server"),
        /held by shop\/licence/,
      );
      assert.deepEqual([await records(), await written()], before);
    });

    it("names the request that a server-side apply drops from a pod, and not what berth wrote beside it", async () => {
      const served = (annotations: Readonly<Record<string, string>>) =>
        apply(pod("served", { annotations }), "--server-side");
      assert.equal(await served({ "berth.dev/ips": "10.20.0.94", note: "x" }), "");
      assert.equal(await served({ "berth.dev/ips": "10.20.0.94" }), "");
      assert.match(
        await apply(pod("served"), "--server-side"),
        /"changes\.pods\.berth\.dev" denied the request: annotation berth\.dev\/ips of pod shop\/served is read when the pod is created, and a change would do nothing; delete the pod /,
      );
    });

    it("keeps what berth wrote: into pods, into claims", async () => {
      const annotate = async (...args: string[]) =>
        (await kubectl(["annotate", "pod", "licence", "-n", "shop", "--overwrite", ...args])).stderr.trim();
      const patch = async (spec: Json) => {
        const body = JSON.stringify({ spec });
        const args = ["patch", "ipclaim", "licence", "-n", "shop", "--type=merge", "-p", body];
        return (await kubectl(args)).stderr.trim();
      };
      const denied = (webhook: string) =>
        `Error from server (Forbidden): admission webhook "${webhook}.berth.dev" denied the request: `;
      const stays = (key: string) =>
        `${denied("changes.pods")}annotation ${key} of pod shop/licence is written by berth when the pod is created and stays; leave it as it is`;
      const own = (field: string) =>
        `${denied("claims")}spec.${field} is written by berth; leave it as it is`;
      assert.equal(await annotate("note=x"), "");
      assert.equal(await annotate("berth.dev/claim=mysql-0"), stays("berth.dev/claim"));
      assert.match(
        await annotate('cni.projectcalico.org/ipAddrs=["10.20.0.98"]'),
        /"changes\.pods\.berth\.dev" denied the request: annotation cni\.projectcalico\.org\/ipAddrs of pod shop\/licence is read when the pod is created, /,
      );
      assert.equal(await annotate("berth.dev/addresses-"), stays("berth.dev/addresses"));
      assert.equal(await patch({ addresses: ["10.20.0.99"] }), own("addresses"));
      assert.equal(await patch({ releasing: true }), own("releasing"));
      assert.equal(
        await patch({ retention: { whenDeleted: "Retain" } }),
        "Warning: claim shop/licence was made for Pod licence; when its pod is created again, what the pod asks for is written over this",
      );
    });

    it("copies a pod, and the copy gains nothing", async () => {
      const copy = async (from: string, to: string, ...flags: string[]) => {
        const args = ["debug", from, "-n", "shop", `--copy-to=${to}`, "--image=registry.example/app:1"];
        const ended = await kubectl([...args, "--container=debugger", "--attach=false", ...flags]);
        return ended.stderr.trim();
      };
      assert.equal(await copy("licence", "thief"), "");
      assert.equal(await addressesOf("thief"), undefined);
      assert.match(
        await copy("licence", "robber", "--keep-annotations"),
        /held by shop\/licence \(Pod licence\)/,
      );
      assert.equal(await copy("sticky", "twin", "--keep-annotations"), "");
      const [own, twin] = [await addressesOf("sticky"), await addressesOf("twin")];
      assert.equal(annotationsOf(await get(PODS, "twin"))["berth.dev/claim"], "twin");
      assert.ok(twin !== undefined && own !== undefined);
      assert.deepEqual(
        twin.split(",").filter((address) => own.split(",").includes(address)),
        [],
      );
      const assigned = { "berth.dev/claim": "licence", "berth.dev/addresses": "10.20.0.70" };
      assert.equal(
        await apply(pod("forger", { annotations: assigned })),
        "Warning: annotations that berth alone writes ask for nothing, and are removed from this pod: berth.dev/claim, berth.dev/addresses; for an address write berth.dev/ips or berth.dev/pools",
      );
      assert.equal(annotationsOf(await get(PODS, "forger"))["berth.dev/claim"], undefined);
    });

    it("binds the claim of a pod that had no name when it was admitted", async () => {
      const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } };
      assert.equal(await apply(node), "");
      const made = await create(deploymentPod("api", { annotations: { "berth.dev/pools": "db" } }));
      const name = made.replace("pod/", "");
      const annotations = annotationsOf(await get(PODS, name));
      const claim = annotations["berth.dev/claim"] ?? "";
      assert.match(claim, /^c-[a-z2-7]{12}$/);
      assert.ok(annotations[ASSIGNED_TOKEN]);
      const path = `/api/v1/namespaces/shop/pods/${name}/binding`;
      const target = { apiVersion: "v1", kind: "Node", name: "node-a" };
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
      assert.equal((await cluster.admin.call({ method: "POST", path, body })).status, 201);
      const { uid } = (await get(PODS, name)).metadata;
      await eventually("the claim is bound", async () => {
        const { binding } = (await get(CLAIMS, claim))["spec"] as { binding?: Json };
        return binding?.["podUID"] === uid && binding["node"] === "node-a" ? true : undefined;
      });
      const gone = await kubectl(["delete", "ipclaim", claim, "-n", "shop"]);
      assert.equal(
        gone.stderr.trim(),
        `Error from server (Forbidden): admission webhook "claims.berth.dev" denied the request: claim shop/${claim} is in use by pod ${name} on node node-a; delete the pod first`,
      );
    });

    it("gives a claim made by hand to the pod of its name, which needs an annotation or a namespace with the label", async () => {
      const resolved = (name: string, namespace: string, address: string) =>
        claimObject(name, { request: { addresses: [address] } }, namespace);
      const reserved = async (namespace: string, name: string) =>
        await eventually(`claim ${name} is reserved`, async () =>
          ((await get(CLAIMS, name, namespace))["spec"] as Json)["nonce"] ? true : undefined,
        );
      assert.match(
        await apply(resolved("byhand", "shop", "10.20.0.53")),
        /^Warning: a pod byhand that asks for nothing is bound to this claim, but may start before /,
      );
      await kubectl(["label", "namespace", "opted", "berth.dev/admission=enabled"]);
      await eventually("the label is known", async () => {
        const warned = await apply(resolved("quiet", "opted", "10.20.0.54"), "--dry-run=server");
        return warned.includes("that asks for nothing") ? undefined : true;
      });
      assert.equal(await apply(resolved("quiet", "opted", "10.20.0.54")), "");
      await Promise.all([reserved("shop", "byhand"), reserved("opted", "quiet")]);
      assert.equal(await apply(pod("byhand")), "");
      assert.equal(await addressesOf("byhand"), undefined);
      await kubectl(["delete", "pod", "byhand", "-n", "shop", "--force", "--grace-period=0"]);
      assert.equal(await apply(asking("byhand", "10.20.0.53")), "");
      assert.equal(await addressesOf("byhand"), "10.20.0.53");
      assert.equal(await apply(pod("quiet", { namespace: "opted" })), "");
      assert.equal(await addressesOf("quiet", "opted"), "10.20.0.54");
    });

    it("goes on without the webhook, for every pod but those that ask for an address", async () => {
      const [replica] = cluster.replicas.all;
      assert.ok(replica);
      await replica.process.stop("SIGKILL");
      const annotations = PIN;
      const mirror = { ...PIN, "kubernetes.io/config.mirror": "x" };
      assert.equal(await apply(pod("plain")), "");
      assert.equal(await apply(pod("host", { annotations, spec: { hostNetwork: true } })), "");
      assert.equal(await apply(pod("mirror", { annotations: mirror, spec: { nodeName: "node-a" } })), "");
      assert.equal(await apply(pod("system", { annotations, namespace: "kube-system" })), "");
      assert.equal(await apply(pod("own", { annotations, namespace: "berth-system" })), "");
      assert.equal(await apply(statefulSet("later", 1, PIN)), "");
      const noted = await kubectl(["annotate", "pod", "licence", "-n", "shop", "note=y", "--overwrite"]);
      assert.equal(noted.rc, 0, noted.stderr);
      const refused = await apply(asking("pinned", "10.20.0.55"));
      assert.match(
        refused,
        /^Error from server \(InternalError\): .*failed calling webhook "pods\.berth\.dev"/,
      );
      assert.match(
        await apply(pod("seen", { namespace: "opted" })),
        /failed calling webhook "namespace\.pods/,
      );
      replica.process.start();
      await cluster.replicas.ready(replica);
      assert.equal(await apply(asking("pinned", "10.20.0.55")), "");
      for (const name of ["plain", "host", "mirror"]) assert.equal(await addressesOf(name), undefined);
    });
  });
}

function claimOf(item: KubeItem): Json {
  const { spec } = item as KubeItem & { readonly spec: Json };
  const identity = spec["identity"] as Json;
  return { addresses: spec["addresses"], identity: `${identity["kind"]} ${identity["name"]}` };
}
