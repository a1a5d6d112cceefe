// SPDX-License-Identifier: Apache-2.0
// What kubectl is told of what cannot be had.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { caseOptions, Times } from "./cases.ts";
import { Lab } from "./lab.ts";
import { type Json, namespace, pod, statefulSet } from "./objects.ts";

let lab: Lab;
before(async () => {
  lab = await Lab.open("refusals");
});
after(async () => await lab?.close());

const ips = (value: string) => ({ annotations: { "berth.dev/ips": value } });

/** What is applied, and the words of the refusal. */
const REFUSALS: readonly { readonly what: string; readonly object: Json; readonly words: RegExp }[] = [
  {
    what: "an address that is taken",
    object: pod("imitator", ips("10.40.1.41")),
    words:
      /address 10\.40\.1\.41 in pool "lab" is held by refusals\/holder \(Pod holder\); free nearby: 10\.40\.1\.\d+/,
  },
  {
    what: "an address outside of every pool",
    object: pod("outside", ips("10.99.0.1")),
    words: /address 10\.99\.0\.1 is in no pool; name one of a pool: .*"lab" 10\.40\.1\.1-10\.40\.1\.254/,
  },
  {
    what: "an excluded address",
    object: pod("excluded", ips("10.40.1.205")),
    words: /address 10\.40\.1\.205 is excluded from pool "lab"; free nearby: 10\.40\.1\.\d+/,
  },
  {
    what: "an address of a pool of other namespaces",
    object: pod("stranger", ips("10.40.2.5")),
    words: /pool "foreign" is not open to namespace refusals; open to it: .*"lab"/,
  },
  {
    what: "a list that is shorter than the replicas",
    object: statefulSet("short", { replicas: 3, ...ips("10.40.1.51;10.40.1.52") }),
    words:
      /the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2; add an entry or lower replicas/,
  },
];

describe("refusals", () => {
  it("E0511 kubectl is told why an address cannot be had, and nothing is made", caseOptions(), async () => {
    const times = new Times("E0511");
    await lab.apply([pod("holder", ips("10.40.1.41"))]);
    for (const { what, object, words } of REFUSALS) {
      const { rc, stderr } = await lab.tryApply([object]);
      assert.notEqual(rc, 0, `${what} is refused`);
      assert.match(stderr, words, what);
    }
    const pods = await lab.must(["get", "pods,statefulsets", "-o", "name"]);
    assert.equal(pods, "pod/holder\n");
    await lab.check();
    times.end();
  });

  it(
    "E0512 an annotation on a StatefulSet instead of its template brings a warning",
    caseOptions(),
    async () => {
      const times = new Times("E0512");
      const set = statefulSet("misplaced", { replicas: 1, misplaced: { "berth.dev/ips": "10.40.1.53" } });
      const { stderr } = await lab.apply([set]);
      assert.match(
        stderr,
        /Warning: annotation berth\.dev\/ips on the StatefulSet itself has no effect; move it to spec\.template/,
      );
      await lab.check();
      times.end();
    },
  );

  it("E0513 a namespace that a pool is not for is told so", caseOptions(), async () => {
    const times = new Times("E0513");
    await lab.apply([namespace("refusals-strangers", {})], { namespace: "default" });
    try {
      const { rc, stderr } = await lab.tryApply([pod("stranger", ips("10.40.1.54"))], {
        namespace: "refusals-strangers",
      });
      assert.notEqual(rc, 0);
      assert.match(stderr, /pool "lab" is not open to namespace refusals-strangers/);
    } finally {
      await lab.must(["delete", "namespace", "refusals-strangers"], { namespace: "default" });
    }
    await lab.check();
    times.end();
  });
});
