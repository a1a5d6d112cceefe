// SPDX-License-Identifier: Apache-2.0
// The webhook configurations of the chart, held to what the handlers do.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { ANNOTATION_FORMATS, EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { DIALECT_ROWS } from "../../allocator/manifest/dialect-rows.ts";
import { NAMED_ROWS, READ_ROWS } from "../../allocator/manifest/dialects.ts";
import { FOREIGN_ROWS } from "../../allocator/manifest/foreign-requests.ts";
import { ASSIGNED, OPT_IN_LABEL, OPT_IN_VALUE } from "../../allocator/manifest/opt-in.ts";
import { OWN_REQUESTS } from "../../allocator/manifest/own-keys.ts";
import { DIALECT_FILES } from "../../scripts/dialect-files.ts";
import { configuration, type Entry } from "../../test/api/webhooks.ts";
import { ROUTES } from "../review/admission-review.ts";

interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const MUTATING = configuration("mutating").webhooks;
const VALIDATING = configuration("validating").webhooks;
const ALL = [...MUTATING, ...VALIDATING];

/** The annotations that an expression lists before it asks whether any of them exists. */
function listed(expression = ""): string[] {
  const list = /^\[([^\]]*)\]\.exists\(/.exec(expression)?.[1] ?? "";
  return [...list.matchAll(/'([^']*)'/g)].map(([, key = ""]) => key);
}

function condition(entry: Entry, name: string): string | undefined {
  return entry.matchConditions?.find((one) => one.name === name)?.expression;
}

function selecting(entry: Entry): readonly Expression[] {
  const { matchExpressions = [] } = (entry["namespaceSelector"] ?? {}) as {
    matchExpressions?: readonly Expression[];
  };
  return matchExpressions;
}

const named = (entries: readonly Entry[], name: string) => entries.filter((entry) => entry.name === name);
const byLabel = (entry: Entry) => selecting(entry).find(({ key }) => key === OPT_IN_LABEL)?.operator;

const FORMAT_KEYS = ANNOTATION_FORMATS.map(({ key }) => key);

describe("the webhook configurations", () => {
  it("opt in by the annotations that the table of dialects has: `node scripts/dialects.ts --write` writes them", () => {
    for (const [path, written] of Object.entries(DIALECT_FILES)) {
      const text = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
      assert.equal(text, written(text), path);
    }
    const rows = new Set<string>([...DIALECT_ROWS.map(({ key }) => key), ...OWN_REQUESTS]);
    assert.deepEqual(
      FORMAT_KEYS.filter((key) => !rows.has(key)),
      [],
    );
    const [spaces] = named(VALIDATING, "namespaces.berth.dev");
    assert.deepEqual(spaces && listed(condition(spaces, "opted-in")), OWN_REQUESTS);
  });

  it("know every key that is read, and every one that is told of", () => {
    const [pods] = named(MUTATING, "pods.berth.dev");
    const [foreign] = named(VALIDATING, "foreign.pods.berth.dev");
    const [changes] = named(VALIDATING, "changes.pods.berth.dev");
    for (const key of [...FORMAT_KEYS, ...ASSIGNED])
      assert.ok(condition(pods as Entry, "opted-in")?.includes(`'${key}'`), key);
    const known = [...READ_ROWS, ...FOREIGN_ROWS].filter(({ on }) => on.includes("pod"));
    for (const key of known.filter(({ matches }) => matches === undefined).map((row) => row.key))
      assert.ok(condition(changes as Entry, "assigned-changes")?.includes(`'${key}'`), key);
    for (const { key, matches } of FOREIGN_ROWS.filter(({ on }) => on.includes("pod"))) {
      const said = matches === undefined ? `'${key}'` : matches.source.replaceAll("\\/", "/");
      assert.ok(condition(foreign as Entry, "asks-elsewhere")?.includes(said), key);
    }
  });

  it("know keys with names in them, whatever these are", () => {
    const [pods] = named(MUTATING, "pods.berth.dev");
    const [changes] = named(VALIDATING, "changes.pods.berth.dev");
    for (const [entry, name] of [
      [pods, "opted-in"],
      [changes, "assigned-changes"],
    ] as const) {
      const [, source = ""] = /key\.matches\('([^']+)'\)/.exec(condition(entry as Entry, name) ?? "") ?? [];
      for (const { key } of NAMED_ROWS) {
        const written = key.replace("<nad>", "lan.a").replace("<namespace>", "shop");
        for (const one of [written, `${written}.net1`, `${written.replace("shop", "shop.ovn")}`])
          assert.match(one, new RegExp(source), `${name}: ${one}`);
      }
      assert.doesNotMatch("ovn.kubernetes.io/ip_address", new RegExp(source));
    }
  });

  it("send no object through one route twice: the label decides which entry it is", () => {
    for (const entries of [MUTATING, VALIDATING]) {
      for (const what of ["pods", "workloads"]) {
        const [one] = named(entries, `${what}.berth.dev`);
        const [other] = named(entries, `namespace.${what}.berth.dev`);
        if (one === undefined || other === undefined) continue;
        assert.deepEqual([byLabel(one), byLabel(other)], ["NotIn", "In"], what);
        for (const entry of [one, other]) {
          const values = selecting(entry).filter(({ key }) => key === OPT_IN_LABEL);
          assert.deepEqual(
            values.map((selection) => selection.values),
            [[OPT_IN_VALUE]],
          );
        }
        assert.deepEqual(one["rules"], other["rules"]);
      }
    }
  });

  it("leave Kubernetes' own namespace, Berth's own, host networks and mirror pods alone", () => {
    const pods = ALL.filter((entry) => entry.clientConfig.service.path.endsWith("/pods"));
    assert.equal(pods.length, 8);
    for (const entry of pods) {
      const [own] = selecting(entry);
      assert.deepEqual(own, {
        key: "kubernetes.io/metadata.name",
        operator: "NotIn",
        values: [EXEMPT_NAMESPACE, "berth-system"],
      });
      if (entry.name === "changes.pods.berth.dev") continue;
      assert.equal(condition(entry, "network-of-its-own"), "!object.spec.?hostNetwork.orValue(false)");
      assert.ok(condition(entry, "no-mirror-pod")?.includes("'kubernetes.io/config.mirror'"));
    }
  });

  it("call every route, fail closed unless they only advise, and are called by names of their own", () => {
    const paths = new Set(ALL.map((entry) => entry.clientConfig.service.path));
    assert.deepEqual([...paths].sort(), [...ROUTES].sort());
    for (const entry of ALL) {
      const isOfWorkloads = entry.clientConfig.service.path === "/validate/workloads";
      const isAdvice = isOfWorkloads || /^(foreign|labels)\./.test(entry.name);
      assert.equal(entry["failurePolicy"], isAdvice ? "Ignore" : "Fail", entry.name);
      // any workload may be scaled, and nobody waits long to hear what is kept
      assert.equal(entry["timeoutSeconds"], entry.name.startsWith("scale.") ? 2 : 10);
      assert.deepEqual(entry["admissionReviewVersions"], ["v1"]);
    }
    assert.deepEqual(
      MUTATING.map(({ name, sideEffects, reinvocationPolicy }) => [name, sideEffects, reinvocationPolicy]),
      [
        ["pods.berth.dev", "NoneOnDryRun", "Never"],
        ["namespace.pods.berth.dev", "NoneOnDryRun", "Never"],
        ["pools.berth.dev", "None", "Never"],
      ],
    );
    for (const entry of VALIDATING) assert.equal(entry["sideEffects"], "None");
    for (const entries of [MUTATING, VALIDATING]) {
      assert.equal(new Set(entries.map(({ name }) => name)).size, entries.length);
    }
  });
});
