// SPDX-License-Identifier: Apache-2.0
// The life of a release: installed, upgraded and rolled back under live claims, uninstalled, and installed again.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { stringify } from "yaml";
import type { KubeItem } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject } from "../support/objects.ts";
import { run } from "../support/process.ts";
import { parseYaml } from "../support/yaml.ts";
import { havePartsOrSkip, partOf } from "./binaries.ts";
import { caBundles, get, records, secretData, startChartPlane, WebhookPod } from "./chart-cluster.ts";
import { CHART, helm, mustHelm, UNCHECKED } from "./chart-release.ts";
import { definitions, makeNamespaces } from "./crds.ts";
import { POOL_OBJECTS } from "./manifests.ts";
import { type ControlPlane, FIELDS_UNSEEN } from "./plane.ts";

const RELEASE = ["berth", "--namespace", "berth-system"] as const;
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PIN = "10.20.0.70";

interface Properties {
  [name: string]: { type: string; properties: Properties };
}

interface Definition {
  spec: { versions: [{ schema: { openAPIV3Schema: { properties: Properties } } }] };
}

/** The fields of a pool's spec. */
function fieldsOf(definition: unknown): Properties {
  const [version] = (definition as Definition).spec.versions;
  return version.schema.openAPIV3Schema.properties["spec"]?.properties ?? {};
}

/** The version after this one: pools have one more field, and one more kind of object is reviewed. */
function nextChart(folder: string): string {
  const next = join(folder, "next");
  cpSync(CHART, next, { recursive: true });
  const change = (file: string, edit: (content: never) => void) => {
    const content: unknown = parseYaml(readFileSync(join(next, file), "utf8"));
    edit(content as never);
    writeFileSync(join(next, file), stringify(content));
  };
  change("Chart.yaml", (chart: { version: string; appVersion: string }) => {
    chart.version = "99.0.0";
    chart.appVersion = "99.0.0";
  });
  change("files/crds/ippools.yaml", (definition: Definition) => {
    fieldsOf(definition)["note"] = { type: "string" } as Properties[string];
  });
  change("files/webhooks/validating.yaml", (configuration: { webhooks: { name: string }[] }) => {
    const last = configuration.webhooks.at(-1);
    configuration.webhooks.push({ ...last, name: "more.berth.dev" });
  });
  return next;
}

if (havePartsOrSkip(["helm", "etcd", "kube-apiserver", "kubectl"])) {
  describe("a release of the chart", { timeout: 600_000 }, () => {
    let plane: ControlPlane;
    const pods: WebhookPod[] = [];
    let known: readonly unknown[];

    before(async () => {
      plane = await startChartPlane();
      await makeNamespaces(plane.connect(), ["shop"]);
    });
    after(async () => {
      for (const each of pods) await each.stop();
      await plane?.close();
    });

    /** The pod that was started last. */
    function webhook(): WebhookPod {
      return pods.at(-1) ?? assert.fail("the webhook was never started");
    }

    /** What kubectl says to that object: nothing if it was made or changed. */
    async function apply(object: Json): Promise<string> {
      const args = ["apply", FIELDS_UNSEEN, "-f", "-"];
      return (await plane.kubectl(args, { stdin: JSON.stringify(object) })).stderr.trim();
    }

    function pinned(name: string, address: string, spec: Json = {}): Json {
      return pod(name, { annotations: { "berth.dev/ips": address }, spec });
    }

    async function addressesOf(name: string): Promise<string | undefined> {
      const made = await get(plane, `/api/v1/namespaces/shop/pods/${name}`);
      const { annotations } = { ...made?.metadata } as { annotations?: Readonly<Record<string, string>> };
      return annotations?.["berth.dev/addresses"];
    }

    async function noted(): Promise<boolean> {
      return "note" in fieldsOf(await get(plane, `${DEFINITIONS}/ippools.berth.dev`));
    }

    it("is installed by one command, and says what to do next", async () => {
      const said = await mustHelm(["install", ...RELEASE, CHART, "--create-namespace"], { plane });
      assert.match(said, /^STATUS: deployed$/m);
      for (const step of [
        "kind: IPPool",
        "berth.dev/ips: ",
        "kubectl berth check",
        '"ipam": { "type": "berth" }',
      ])
        assert.ok(said.includes(step), step);
      pods.push(await WebhookPod.start(plane, "berth-webhook-a"));
      for (const object of POOL_OBJECTS) assert.equal(await apply(object), "");
      assert.equal(await apply({ apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } }), "");
      assert.equal(await apply(pinned("licence", PIN, { nodeName: "node-a" })), "");
      assert.equal(await addressesOf("licence"), PIN);
      // the pool and the claim, once it is bound
      known = await eventually("both are held", async () => {
        const all = await records(plane);
        const held = all
          .map((one) => JSON.stringify(one))
          .filter((one) => one.includes('"berth.dev/in-use"'));
        const isHeld = (name: string) => held.some((one) => one.startsWith(`{"name":"${name}"`));
        return isHeld("db") && isHeld("licence") ? all : undefined;
      });
      assert.equal(known.length, 4);
    });

    it("cannot be there twice", async () => {
      const { rc, stderr } = await helm(["install", UNCHECKED, "other", CHART, "--namespace", "shop"], {
        plane,
      });
      assert.equal(rc, 1);
      assert.match(
        stderr,
        /exists and cannot be imported into the current release: invalid ownership metadata/,
      );
    });

    it("is upgraded, definitions too, and leaves claims, certificates and trust as they are", async () => {
      const [secret, trust] = [await secretData(plane), await caBundles(plane)];
      assert.ok(JSON.stringify(secret).includes("ca.key"));
      await webhook().paused(async () => {
        const values = { webhook: { replicas: 3 } };
        await mustHelm(["upgrade", UNCHECKED, ...RELEASE, nextChart(plane.folder)], { plane, values });
        assert.deepEqual(await secretData(plane), secret);
        assert.deepEqual(await caBundles(plane), [...trust, ""]);
        assert.deepEqual(await records(plane), known);
      });
      assert.ok(await noted());
      assert.equal(await apply(pinned("second", "10.20.0.71")), "");
      assert.equal(await addressesOf("second"), "10.20.0.71");
      await eventually(
        "the new entry is trusted",
        async () => ((await caBundles(plane)).every((bundle) => bundle === trust[0]) ? true : undefined),
        30_000,
      );
    });

    it("is rolled back, and still leaves them so", async () => {
      const [secret, trust, before] = [await secretData(plane), await caBundles(plane), await records(plane)];
      await webhook().paused(async () => {
        await mustHelm(["rollback", ...RELEASE], { plane });
        assert.deepEqual(await secretData(plane), secret);
        assert.deepEqual(await caBundles(plane), trust.slice(0, -1));
        assert.deepEqual(await records(plane), before);
      });
      assert.ok(!(await noted()));
      assert.match(await apply(pinned("thief", PIN)), /is held by shop\/licence/);
    });

    it("is uninstalled: those who are asked first, the webhook later, and definitions and claims not at all", async () => {
      known = await records(plane);
      const { rc, stderr } = await helm(["uninstall", ...RELEASE, "--debug"], { plane });
      assert.equal(rc, 0, stderr);
      const at = (what: string) => stderr.indexOf(`Starting delete for ${what}`);
      const service = at('"berth-webhook" Service');
      assert.ok(service > 0);
      for (const kind of ["Mutating", "Validating"]) {
        const first = at(`"berth" ${kind}WebhookConfiguration`);
        assert.ok(first > 0 && first < service, kind);
        const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
        assert.deepEqual((await get(plane, path))?.["items"], []);
      }
      await webhook().stop();
      await eventually("a pinned pod is made, by nobody's leave", async () =>
        (await apply(pinned("unasked", PIN))) === "" ? true : undefined,
      );
      assert.equal(await addressesOf("unasked"), undefined);
      assert.equal(await secretData(plane), undefined);
      assert.deepEqual(await records(plane), known);
      const kept = (await get(plane, DEFINITIONS))?.["items"] as readonly KubeItem[];
      assert.deepEqual(
        kept.map(({ metadata }) => [metadata.name, metadata.deletionTimestamp]),
        definitions().map(({ metadata }) => [metadata.name, undefined]),
      );
    });

    it("finds them when it is installed again", async () => {
      await mustHelm(["install", UNCHECKED, ...RELEASE, CHART], { plane });
      pods.push(await WebhookPod.start(plane, "berth-webhook-b"));
      assert.deepEqual(await records(plane), known);
      assert.match(await apply(pinned("thief", PIN)), /is held by shop\/licence/);
      const overlaps = poolObject("again", { ranges: [{ cidr: "10.20.0.0/24" }] });
      assert.match(await apply(overlaps), /pools again and db both contain/);
    });

    it("leaves nothing once the README's last commands were run, also where only its namespace was deleted", async () => {
      const { rc, stderr } = await plane.kubectl(["delete", "namespace", "berth-system", "--wait=false"]);
      assert.equal(rc, 0, stderr);
      await webhook().stop();
      const readme = readFileSync(join(CHART, "README.md"), "utf8");
      const commands = /<!-- remove -->\n```\n(.*?)```\n/s.exec(readme)?.[1] ?? assert.fail("no commands");
      const env = {
        PATH: `${join(partOf("kubectl"), "..")}:/usr/bin:/bin`,
        HOME: plane.folder,
        KUBECONFIG: join(plane.folder, "helm.kubeconfig"),
      };
      const said: string[] = [];
      // the policies are in force for a moment longer, and kept the finalizers
      await eventually("the commands succeed", async () => {
        const { rc, stderr } = await run("/bin/bash", ["-euo", "pipefail", "-c", commands], { env });
        said.push(stderr);
        return rc === 0 ? true : undefined;
      }).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${said.at(-1)}`);
      });
      const left = await plane.kubectl([
        ...["get", "--output=name", "--selector=app.kubernetes.io/name=berth"],
        "clusterroles,validatingadmissionpolicies,validatingwebhookconfigurations",
      ]);
      assert.deepEqual([left.stdout, left.rc], ["", 0], left.stderr);
      await eventually("Berth's kinds are gone", async () => {
        const now = await plane.connect().call({ method: "GET", path: "/apis/berth.dev" });
        return now.status === 404 ? true : undefined;
      });
    });
  });
}
