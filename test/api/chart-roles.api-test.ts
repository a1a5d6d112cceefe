// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { manifestsOf } from "./accounts.ts";
import type { Rule } from "./audit-log.ts";

describe("the chart's roles", () => {
  const roles = manifestsOf("rbac").filter(({ kind }) => kind.endsWith("Role"));
  const rules = roles.flatMap((role) => role["rules"] as readonly Rule[]);
  const about = (what: string) =>
    rules.filter(({ resources }) => resources.some((one) => one.startsWith(what)));

  it("name every group, resource and verb", () => {
    assert.ok(roles.length >= 6);
    const words = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs]);
    assert.deepEqual(
      words.filter((word) => word.includes("*")),
      [],
    );
  });

  it("give no secret and no webhook configuration but Berth's, and no write to pods", () => {
    assert.deepEqual(
      about("secrets").map(({ resourceNames, verbs }) => [resourceNames, verbs]),
      [
        [
          ["berth-webhook-ca", "berth-webhook-tls"],
          ["get", "list", "watch", "patch"],
        ],
        [["berth-webhook-tls"], ["list", "watch"]],
      ],
    );
    const configurations = [...about("mutatingwebhook"), ...about("validatingwebhook")];
    for (const { resourceNames } of configurations) assert.deepEqual(resourceNames, ["berth"]);
    for (const { verbs } of about("pods")) assert.deepEqual(verbs, ["get", "list", "watch"]);
    assert.deepEqual(
      [configurations, about("pods")].map((some) => some.length),
      [4, 2],
    );
  });
});
