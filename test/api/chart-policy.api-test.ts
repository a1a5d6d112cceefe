// SPDX-License-Identifier: Apache-2.0
// What must hold of the manifests, whatever values they were rendered with.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fieldPattern } from "../../allocator/manifest/dialect-row.ts";
import { LABEL_ROWS, READ_ROWS } from "../../allocator/manifest/dialects.ts";
import { parseDialects, SYSTEM_NAMES } from "../../allocator/model/dialect.ts";
import type { Manifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CONFIGURATIONS, NARROWED, templateNamed, UNREAD } from "./chart-manifests.ts";
import { only, render } from "./chart-release.ts";

if (havePartsOrSkip(["helm"])) {
  describe("which requests berth answers, as the values have it", () => {
    interface Entry {
      readonly name: string;
      readonly failurePolicy: string;
      readonly timeoutSeconds: number;
      readonly namespaceSelector?: { readonly matchExpressions: readonly { readonly key: string }[] };
      readonly objectSelector?: unknown;
      readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
    }
    const CALICO = ["ipAddrs", "ipv4pools", "ipv6pools"].map((key) => `'cni.projectcalico.org/${key}'`);
    const entriesOf = (manifests: readonly Manifest[]) =>
      Object.values(CONFIGURATIONS).flatMap((kind) => only(manifests, kind)["webhooks"] as readonly Entry[]);
    const condition = (entries: readonly Entry[], name: string, of: string) =>
      entries.find((entry) => entry.name === name)?.matchConditions?.find((one) => one.name === of)
        ?.expression ?? assert.fail(name);
    const asksOf = (manifests: readonly Manifest[]) =>
      JSON.stringify(only(manifests, "ValidatingAdmissionPolicy", "pods.berth.dev").spec);
    const has = (text: string) => CALICO.map((key) => text.includes(key));

    it("in Calico's words: those for its own pools, all, or none", async () => {
      for (const [calico, [opted, elsewhere, policy]] of Object.entries({
        own: [true, false, false],
        all: [true, false, true],
        none: [false, true, false],
      })) {
        const manifests = await render({ dialects: { calico } });
        const entries = entriesOf(manifests);
        const thrice = (is = false) => [is, is, is];
        assert.deepEqual(has(condition(entries, "pods.berth.dev", "opted-in")), thrice(opted), calico);
        const reported = condition(entries, "foreign.pods.berth.dev", "asks-elsewhere");
        assert.deepEqual(has(reported), thrice(elsewhere), calico);
        // a template is looked at either way, for there it is told
        assert.deepEqual(has(condition(entries, "workloads.berth.dev", "opted-in")), thrice(true), calico);
        assert.deepEqual(has(asksOf(manifests)), thrice(policy), calico);
        for (const name of ["berth-webhook", "berth-agent"]) {
          const [container] = templateNamed(manifests, name).spec.containers;
          const variable = container?.env.find((one) => one.name === "BERTH_DIALECTS");
          const { calico: chosen, ...others } = parseDialects(variable?.value ?? "") ?? {};
          assert.deepEqual([chosen, new Set(Object.values(others))], [calico, new Set(["own"])], name);
        }
      }
    });

    it("in every other system's words, too", async () => {
      const key = (system: string) =>
        READ_ROWS.find((row) => row.system === system && row.containing === undefined);
      const choices = Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "none"]));
      const without = entriesOf(await render({ dialects: choices }));
      const all = await render({
        dialects: Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "all"])),
      });
      for (const system of SYSTEM_NAMES) {
        const quoted = `'${key(system)?.key}'`;
        if (system === "multus") continue; // which asks with some values only, and by no key
        assert.ok(!condition(without, "pods.berth.dev", "opted-in").includes(quoted), system);
        assert.ok(condition(without, "foreign.pods.berth.dev", "asks-elsewhere").includes(quoted), system);
        assert.ok(condition(entriesOf(all), "pods.berth.dev", "opted-in").includes(quoted), system);
        if (system !== "kubeOvn") assert.ok(asksOf(all).includes(quoted), system);
      }
      const [named = ""] =
        /key\.matches\('[^']+'\)/.exec(condition(entriesOf(all), "pods.berth.dev", "opted-in")) ?? [];
      const hasNamed = (entries: readonly Entry[]) =>
        [
          ["pods.berth.dev", "opted-in"],
          ["foreign.pods.berth.dev", "asks-elsewhere"],
          ["workloads.berth.dev", "opted-in"],
        ].map(([webhook = "", name = ""]) => condition(entries, webhook, name).includes(named));
      assert.ok(named.includes("ip_address"));
      assert.deepEqual(hasNamed(entriesOf(all)), [true, false, true]);
      assert.deepEqual(hasNamed(without), [false, true, true]);
      const spaces = (entries: readonly Entry[]) =>
        condition(entries, "foreign.namespaces.berth.dev", "asks-elsewhere");
      assert.equal(spaces(without), spaces(entriesOf(all)));
    });

    it("in no word of any other system that is not read, where nothing is to be told of it", async () => {
      // of namespaces, and as labels, they are told of whoever reads them
      const isToldElsewhere = ({ key, on }: (typeof READ_ROWS)[number]) =>
        on.includes("namespace") || LABEL_ROWS.some((row) => row.key === key);
      for (const system of SYSTEM_NAMES) {
        const { webhook } = UNREAD;
        const choices = { webhook, dialects: { [system]: "none" } };
        const entries = entriesOf(await render(choices)).filter(({ name }) => !name.startsWith("labels."));
        const conditions = entries.flatMap(({ matchConditions = [] }) => matchConditions);
        const rows = READ_ROWS.filter((row) => row.system === system && !isToldElsewhere(row));
        for (const { key, matches, containing } of rows) {
          const pattern = matches && "(ip_address|ip_pool";
          const word =
            pattern ??
            (containing === undefined
              ? `'${key}'`
              : `'${key}'].orValue('').matches(r'(?i)${fieldPattern(containing)}')`);
          const which = conditions
            .filter(({ expression }) => expression.includes(word))
            .map(({ name }) => name);
          assert.deepEqual([key, which], [key, []]);
        }
      }
    });

    it("in Multus' words too, with the values that ask: told of elsewhere where they are not read", async () => {
      const ips = `'k8s.v1.cni.cncf.io/networks'].orValue('').matches(r'(?i)${fieldPattern("ips")}')`;
      const without = entriesOf(await render({ dialects: { multus: "none" } }));
      assert.ok(!condition(without, "pods.berth.dev", "opted-in").includes(ips));
      assert.ok(
        condition(without, "foreign.pods.berth.dev", "asks-elsewhere").includes(`annotations[?${ips}`),
      );
      assert.ok(condition(without, "workloads.berth.dev", "opted-in").includes(ips));
    });

    it("of the namespaces and pods that they select, and no longer than they say", async () => {
      const manifests = await render(NARROWED);
      const entries = entriesOf(manifests);
      const limits = Object.fromEntries(entries.map(({ name, timeoutSeconds }) => [name, timeoutSeconds]));
      // of any workload: nobody is to wait for that
      const { "scale.workloads.berth.dev": scale, ...others } = limits;
      assert.deepEqual([scale, [...new Set(Object.values(others))]], [2, [5]]);
      for (const entry of entries) {
        const keys = entry.namespaceSelector?.matchExpressions.map(({ key }) => key);
        if (keys !== undefined)
          assert.deepEqual([keys[0], keys.at(-1)], ["kubernetes.io/metadata.name", "berth"]);
        const pods = /pods\.berth\.dev$/.test(entry.name);
        assert.deepEqual(entry.objectSelector, pods ? { matchLabels: { net: "berth" } } : undefined);
        const closed = !pods || entry.name === "changes.pods.berth.dev";
        const preview = /workloads\.berth\.dev$|^labels\./.test(entry.name);
        // foreignRequests: refuse, of a namespace; a pod follows failurePolicy
        assert.equal(entry.failurePolicy, closed && !preview ? "Fail" : "Ignore", entry.name);
        const names = (entry.matchConditions ?? []).map(({ name }) => name);
        assert.ok(!names.includes("changed-since"), "a first review that failed has written nothing");
      }
      const skipping = entriesOf(await render({})).filter(({ matchConditions = [] }) =>
        matchConditions.some(({ name }) => name === "changed-since"),
      );
      assert.deepEqual(
        skipping.map(({ name }) => name),
        ["pods.berth.dev", "namespace.pods.berth.dev"],
      );
      const policy = asksOf(manifests);
      assert.ok(policy.includes('"net":"berth"') && policy.includes('"key":"berth"'));
      const binding = only(manifests, "ValidatingAdmissionPolicyBinding", "pods.berth.dev");
      assert.deepEqual((binding.spec as { validationActions: unknown }).validationActions, ["Warn"]);
    });
  });
}
