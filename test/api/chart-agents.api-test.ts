// SPDX-License-Identifier: Apache-2.0
// Where a release has its agents: in a namespace of their own, whatever release was there before.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { KubeItem } from "../../kube/api/resource.ts";
import type { Manifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { get } from "./chart-cluster.ts";
import { CHART, mustHelm, UNCHECKED, type Values } from "./chart-release.ts";
import type { ControlPlane } from "./plane.ts";
import { openUndefinedPlane } from "./shared-plane.ts";

const RELEASE = ["berth", "--namespace", "berth-system"] as const;
const AGENTS = "berth-system-agents";
const ACCOUNT = /system:serviceaccount:([a-z-]+):berth-agent/g;

/** The chart as it was up to 0.1: with agents beside the webhook if nothing was said. */
function earlierChart(folder: string): string {
  const earlier = join(folder, "earlier");
  cpSync(CHART, earlier, { recursive: true });
  const file = join(earlier, "templates/_helpers.tpl");
  const text = readFileSync(file, "utf8");
  const now = '{{- .Values.agent.namespace | default (printf "%s-agents"';
  assert.ok(text.includes(now));
  writeFileSync(
    file,
    text.replace(
      /\{\{- \.Values\.agent\.namespace \| default .*\}\}/,
      () => "{{- .Values.agent.namespace | default .Release.Namespace }}",
    ),
  );
  return earlier;
}

if (havePartsOrSkip(["helm", "etcd", "kube-apiserver", "kubectl"])) {
  describe("the agents of a release", { timeout: 600_000 }, () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await openUndefinedPlane();
    });
    after(async () => await plane?.close());

    async function listed(path: string): Promise<readonly Manifest[]> {
      return (await get(plane, path))?.["items"] as readonly Manifest[];
    }

    /** Where they, their account, and the account that roles and policies name are. */
    async function places(): Promise<Readonly<Record<string, readonly (string | undefined)[]>>> {
      const sets = await listed("/apis/apps/v1/daemonsets");
      const accounts = await listed("/api/v1/serviceaccounts");
      const bindings = await listed("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
      const policies = await listed("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies");
      const subjects = bindings.flatMap(
        ({ subjects }) => (subjects ?? []) as { name: string; namespace: string }[],
      );
      return {
        sets: sets.map(({ metadata }) => metadata.namespace),
        accounts: accounts.flatMap(({ metadata: { name, namespace } }) =>
          name === "berth-agent" ? [namespace] : [],
        ),
        roles: [
          ...new Set(subjects.flatMap(({ name, namespace }) => (name === "berth-agent" ? [namespace] : []))),
        ],
        policies: [...new Set(Array.from(JSON.stringify(policies).matchAll(ACCOUNT), ([, where]) => where))],
      };
    }

    const allIn = (where: string) => ({
      sets: [where],
      accounts: [where],
      roles: [where],
      policies: [where],
    });

    it("are beside the webhook in one of the chart up to 0.1", async () => {
      await mustHelm(["install", UNCHECKED, ...RELEASE, earlierChart(plane.folder), "--create-namespace"], {
        plane,
      });
      assert.deepEqual(await places(), allIn("berth-system"));
    });

    it("stay there when it is upgraded and that is said", async () => {
      const values = { agent: { namespace: "berth-system" } };
      const said = await mustHelm(["upgrade", UNCHECKED, ...RELEASE, CHART], { plane, values });
      assert.deepEqual(await places(), allIn("berth-system"));
      assert.ok(
        said.includes("kubectl label namespace berth-system pod-security.kubernetes.io/enforce=privileged"),
      );
      await mustHelm(["rollback", ...RELEASE], { plane });
    });

    it("move when it is upgraded and nothing is said, to a namespace that lets them be what they are", async () => {
      const said = await mustHelm(["upgrade", UNCHECKED, ...RELEASE, CHART, "--reset-then-reuse-values"], {
        plane,
      });
      assert.deepEqual(await places(), allIn(AGENTS));
      const made = (await get(plane, `/api/v1/namespaces/${AGENTS}`)) ?? assert.fail("no namespace");
      const { labels } = made.metadata as { labels?: Readonly<Record<string, string>> };
      assert.equal(labels?.["pod-security.kubernetes.io/enforce"], "privileged");
      assert.ok(said.includes(`kubectl -n ${AGENTS} rollout status daemonset/berth-agent`));
      assert.ok(
        said.includes("kubectl label namespace berth-system pod-security.kubernetes.io/enforce=restricted"),
      );
    });

    for (const [what, namespace, agent, words] of [
      [
        "a namespace that others use",
        "default",
        {},
        /WARNING: BERTH IS IN THE NAMESPACE default.*\n.*may not start/,
      ],
      [
        "a namespace that the chart does not make",
        "berth-system",
        { namespace: "nodes", createNamespace: false },
        /\n\nThe chart does not make nodes \(.*\n\n {2}kubectl label namespace nodes pod-security[^\n]*=privileged\n\n\S/,
      ],
    ] as const) {
      it(`come with word of what is to do in ${what}`, async () => {
        const notes = async (where: string, values: Values) =>
          await mustHelm(
            [
              "install",
              UNCHECKED,
              "tried",
              CHART,
              "--namespace",
              where,
              "--dry-run=client",
              "--take-ownership",
            ],
            { values, plane },
          );
        assert.match(await notes(namespace, { agent }), words);
        assert.doesNotMatch(await notes("berth-system", {}), words);
      });
    }

    it("go back with a rollback, and come again", async () => {
      await mustHelm(["rollback", ...RELEASE], { plane });
      assert.deepEqual(await places(), allIn("berth-system"));
      await mustHelm(["upgrade", UNCHECKED, ...RELEASE, CHART], { plane });
      assert.deepEqual(await places(), allIn(AGENTS));
    });

    it("leave their namespace when it is uninstalled, which the next one finds", async () => {
      await mustHelm(["uninstall", ...RELEASE], { plane });
      assert.deepEqual((await places())["sets"], []);
      const kept = (await get(plane, `/api/v1/namespaces/${AGENTS}`)) as KubeItem | undefined;
      assert.ok(kept !== undefined);
      assert.equal(kept.metadata.deletionTimestamp, undefined);
      await mustHelm(["install", UNCHECKED, ...RELEASE, CHART], { plane });
      assert.deepEqual(await places(), allIn(AGENTS));
    });
  });
}
