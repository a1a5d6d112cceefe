// SPDX-License-Identifier: Apache-2.0
// Whatever pods write into their annotations, none gets an address that pool, namespace, labels, account or limit deny.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Answer, Connection } from "../../kube/api/connection.ts";
import {
  CLAIMS,
  collectionPath,
  type KubeItem,
  PODS,
  RESERVATIONS,
  type Resource,
} from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { annotationsOf, claimObject, type Json, pod } from "../support/objects.ts";
import { runsOf } from "../support/runs.ts";
import { installPolicies } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions } from "./crds.ts";
import { HOST_WITH_CLAIM, refusalIn, Tally } from "./isolation-tally.ts";
import {
  type Attempt,
  attemptOf,
  type Bearer,
  DEPLOYMENT,
  denied,
  LIMIT,
  type NamespaceRule,
  OF_NO_WORKLOAD,
  poolObjects,
  RULES,
  ruleOf,
  SLOTS,
  SPACES,
  type Victim,
} from "./isolation-world.ts";
import type { ControlPlane } from "./plane.ts";
import { makeDeployment, makeNamespace } from "./replica-objects.ts";
import { type Replicas, startReplicas } from "./replicas.ts";
import { openControlPlane } from "./shared-plane.ts";

const SEED = Number(process.env["BERTH_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const PODS_IN_ALL = Number(process.env["BERTH_PODS"] ?? runsOf(10_000, 2_000));
const AT_ONCE = 32;
/** More than the API server gives a request. */
const ANSWER_MS = 60_000;

function addressesIn(annotations: Readonly<Record<string, string>>): readonly string[] {
  return annotations["berth.dev/addresses"]?.split(",") ?? [];
}

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe(`isolation of namespaces and accounts (BERTH_SEED=${SEED})`, () => {
    const victims: Victim[] = [];
    const bearers = new Map<string, Bearer>(); // namespace/claim -> the pod that was admitted with it
    /** Those whose answer came too late for the API server: what they were given is theirs until it is let go. */
    const unanswered: Bearer[] = [];
    const owners = new Map<string, string>(); // address -> namespace/claim
    const tally = new Tally();
    let plane: ControlPlane;
    let connection: Connection;
    let replicas: Replicas;

    before(async () => {
      plane = await openControlPlane();
      connection = plane.connect();
      await installDefinitions(connection);
      for (const space of SPACES) await makeNamespace(connection, space.name, metadataOf(space));
      // the policies are those of the files, which the chart would narrow: what is in Calico's words is for Berth
      replicas = await startReplicas(plane, { env: { BERTH_DIALECTS: "calico=all" } });
      await installPolicies(connection);
      for (const object of poolObjects()) await applied(object);
      for (const { name: namespace } of SPACES) {
        // with entries, so that the slots of its pods are wanted
        const annotations = { "berth.dev/ips": SLOTS.join(";") };
        await makeDeployment(connection, { namespace, name: DEPLOYMENT }, { replicas: 0, annotations });
      }
      for (const { name, holders } of SPACES) for (const holder of holders) await mayUse(name, holder);
    });
    after(async () => {
      await replicas?.close();
      await plane?.close();
    });

    async function applied(object: Json): Promise<void> {
      const { rc, stderr } = await plane.kubectl(["apply", "-f", "-"], { stdin: JSON.stringify(object) });
      assert.equal(rc, 0, stderr);
    }

    /** The account may use every pool that asks for that. */
    async function mayUse(namespace: string, account: string): Promise<void> {
      const group = "rbac.authorization.k8s.io";
      const metadata = { name: "use", namespace };
      const resourceNames = RULES.filter(({ use }) => use).map(({ name }) => name);
      const rules = [{ apiGroups: ["berth.dev"], resources: ["ippools"], resourceNames, verbs: ["use"] }];
      const subjects = [{ kind: "ServiceAccount", name: account, namespace }];
      const roleRef = { apiGroup: group, kind: "Role", name: "use" };
      await applied({ apiVersion: `${group}/v1`, kind: "Role", metadata, rules });
      await applied({ apiVersion: `${group}/v1`, kind: "RoleBinding", metadata, subjects, roleRef });
    }

    async function send(object: Json, dryRun = false): Promise<Answer> {
      const { namespace } = object["metadata"] as { readonly namespace: string };
      const resource = object["kind"] === "Pod" ? PODS : CLAIMS;
      const query = dryRun ? { dryRun: "All" } : {};
      return await connection.call({
        method: "POST",
        path: collectionPath(resource, namespace),
        query,
        body: object,
        timeoutMs: ANSWER_MS,
      });
    }

    /** What a pod was given. */
    function keep(bearer: Bearer, annotations: Readonly<Record<string, string>>): void {
      const key = `${bearer.namespace.name}/${annotations["berth.dev/claim"]}`;
      bearers.set(key, bearer);
      for (const address of addressesIn(annotations)) {
        assert.equal(owners.get(address), undefined, `${address} of ${key} is another's`);
        owners.set(address, key);
      }
    }

    async function everything(resource: Resource): Promise<readonly KubeItem[]> {
      const all: KubeItem[] = [];
      for await (const { items } of new Client(connection, resource).pages({}, 500)) all.push(...items);
      return all;
    }

    it("some pods have addresses, which others will want", async () => {
      const bank = SPACES.find(({ name }) => name === "bank") ?? assert.fail();
      const bearer = { namespace: bank, account: "holder", tier: "gold" };
      for (const { name } of RULES.filter(
        (rule) => rule.disabled !== true && rule.perNamespace === undefined,
      )) {
        for (const podIdentity of [{ name: `victim-${name}` }, { name: "", generateName: "victim-" }]) {
          const object = pod(podIdentity.name, {
            ...{
              ...podIdentity,
              namespace: "bank",
              labels: { tier: "gold" },
              spec: { serviceAccountName: "holder" },
            },
            annotations: { "berth.dev/pools": name },
          });
          const answer = await eventually("the role is in force", async () => {
            const tried = await send(object);
            return tried.status === 201 ? tried : undefined;
          });
          const annotations = annotationsOf(answer.body as Json);
          keep(bearer, annotations);
          victims.push({
            namespace: "bank",
            claim: annotations["berth.dev/claim"] ?? "",
            addresses: annotations["berth.dev/addresses"] ?? "",
            token: annotations["berth.dev/token"] ?? "stolen",
          });
        }
      }
      assert.ok(victims.some(({ token }) => token !== "stolen"));
    });

    it("every namespace has as many addresses of the scarce pool as it may", async () => {
      const annotations = { "berth.dev/pools": "10.54.0.0/20" };
      for (const namespace of SPACES) {
        for (let n = 0; n < LIMIT; n++) {
          const object = pod(`scarce-${n}`, { namespace: namespace.name, annotations });
          const answer = await send(object);
          assert.equal(answer.status, 201, JSON.stringify(answer.body));
          keep({ namespace, account: "default", tier: "" }, annotationsOf(answer.body as Json));
        }
        const more = pod("more", { namespace: namespace.name, annotations });
        await eventually("the replica knows of all of them", async () =>
          refusalIn(await send(more, true)) === "LIMIT_REACHED" ? true : undefined,
        );
      }
    });

    it(`of ${PODS_IN_ALL} pods none gets what is denied to it`, async () => {
      const began = performance.now();
      let next = 0;
      const work = async () => {
        while (next < PODS_IN_ALL) {
          const n = next++;
          const attempt = attemptOf(SEED, n, victims);
          judge(n, attempt, await send(attempt.object, attempt.dryRun));
        }
      };
      const claims = handMade();
      await Promise.all([...Array.from({ length: AT_ONCE }, work), claims]);
      const seconds = Math.round((performance.now() - began) / 1000);
      console.log([`BERTH_SEED=${SEED}, ${PODS_IN_ALL} pods in ${seconds} s:`, ...tally.lines()].join("\n"));
    });

    function judge(n: number, attempt: Attempt, answer: Answer): void {
      const about = `pod ${n}: ${JSON.stringify(attempt.object)}`;
      if (answer.status !== 201) judgeRefused(attempt, refusalIn(answer));
      else if (attempt.hostNetwork) {
        assert.ok(!attempt.forged, about);
        tally.count("on the host's network");
      } else if (attempt.dryRun) {
        for (const address of attempt.named) mayHave(attempt, address, about);
        tally.count("rehearsed");
      } else if (addressesIn(annotationsOf(answer.body as Json)).length === 0) {
        judgeUntouched(attempt, annotationsOf(answer.body as Json), about);
      } else judgeObtained(attempt, annotationsOf(answer.body as Json), about);
    }

    /** The webhook is not asked for what is on the host's network: a policy keeps another's claim from it. */
    function judgeRefused(attempt: Attempt, refusal: string): void {
      const isPolicys = refusal === "policy" && attempt.hostNetwork && attempt.forged;
      tally.count(isPolicys ? HOST_WITH_CLAIM : refusal);
      if (refusal.startsWith("fault")) unanswered.push(attempt);
    }

    function mayHave(bearer: Bearer, address: string, about: string): void {
      assert.equal(denied(bearer, address), undefined, `${address} for ${about}`);
    }

    /** What asks for an address never starts without, and nobody keeps what he has copied. */
    function judgeUntouched(
      { named, forged }: Attempt,
      annotations: Readonly<Record<string, string>>,
      about: string,
    ): void {
      const left = Object.keys(annotations).filter((key) =>
        /^berth\.dev\/(claim|addresses|token)$/.test(key),
      );
      assert.deepEqual([left, named], [[], []], about);
      tally.count(forged ? "untouched, stripped of another's annotations" : "untouched");
    }

    function judgeObtained(
      attempt: Attempt,
      annotations: Readonly<Record<string, string>>,
      about: string,
    ): void {
      for (const address of addressesIn(annotations)) {
        mayHave(attempt, address, about);
        assert.notEqual(ruleOf(address)?.name, "scarce", `${address} for ${about}`);
        assert.ok(attempt.named.length === 0 || attempt.named.includes(address), `${address} for ${about}`);
      }
      keep(attempt, annotations);
      tally.count(attempt.forged ? "obtained, with another's annotations" : "obtained");
    }

    /** Claims that people make by hand: no account speaks for them, and no labels. */
    async function handMade(): Promise<void> {
      for (const { name } of SPACES) {
        for (const { name: wanted, second } of RULES) {
          const bySpec = [
            { pools: [wanted] },
            { addresses: [`10.${second}.14.${20 + SPACES.findIndex((one) => one.name === name)}`] },
          ];
          for (const [n, request] of bySpec.entries()) {
            const answer = await send(claimObject(`hand-${wanted}-${n}`, { request }, name));
            tally.count(answer.status === 201 ? "claim made by hand" : `claim by hand: ${refusalIn(answer)}`);
          }
        }
      }
    }

    it("enough was tried of everything, nothing was refused by policies alone, and hardly anything failed", () => {
      tally.assertTold(PODS_IN_ALL);
    });

    it("and the books say the same", async () => {
      const claims = new Map(
        (await everything(CLAIMS)).map((item) => [
          `${item.metadata.namespace}/${item.metadata.name}`,
          specOf(item),
        ]),
      );
      for (const [address, key] of owners) {
        const spec = claims.get(key);
        // a StatefulSet that is not there keeps no claim until its pod is stored
        if (spec === undefined) assert.match(key, OF_NO_WORKLOAD, `${address} of ${key}`);
        else assert.ok((spec["addresses"] as readonly string[]).includes(address), `${address} of ${key}`);
      }
      const held = new Map<string, number>(); // namespace -> addresses of the scarce pool
      for (const item of await everything(RESERVATIONS)) {
        const { address, claim } = specOf(item) as {
          address: string;
          claim: { namespace: string; name: string };
        };
        const key = `${claim.namespace}/${claim.name}`;
        const namespace = SPACES.find(({ name }) => name === claim.namespace) ?? assert.fail(key);
        const known = bearers.get(key);
        const nobody = { namespace, account: "nobody", tier: "none" };
        const possible = known
          ? [known]
          : [nobody, ...unanswered.filter((one) => one.namespace === namespace)];
        const reasons = possible.map((bearer) => denied(bearer, address));
        assert.ok(reasons.includes(undefined), `${address} of ${key}: ${reasons}`);
        if (ruleOf(address)?.name === "scarce")
          held.set(claim.namespace, (held.get(claim.namespace) ?? 0) + 1);
      }
      assert.deepEqual(
        [...held.values()],
        SPACES.map(() => LIMIT),
      );
    });
  });
}

function metadataOf({ team, opted, pool }: NamespaceRule): Json {
  return {
    labels: { ...(team ? { team } : {}), ...(opted ? { "berth.dev/admission": "enabled" } : {}) },
    annotations: pool === undefined ? {} : { "berth.dev/pools": pool },
  };
}

function specOf(item: KubeItem): Readonly<Record<string, unknown>> {
  return (item as KubeItem & { readonly spec: Readonly<Record<string, unknown>> }).spec;
}
