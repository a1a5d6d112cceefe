// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { LabelExpression } from "../../allocator/pool/label-selector.ts";
import { applied } from "../testing/applied.ts";
import { addNodeAffinity, annotate, applyAndVerify, pointer } from "./json-patch.ts";

const REQUIRED = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
const BEIJING: LabelExpression = { key: "topology.kubernetes.io/zone", operator: "In", values: ["beijing"] };
const FAST: LabelExpression = { key: "example.com/fast", operator: "Exists" };

/** JSON.parse makes no objects without a prototype. */
const PLAIN = { noNullPrototype: true } as const;

function podWith(nodeAffinity: unknown) {
  return { spec: { containers: [], affinity: { podAffinity: { keep: true }, nodeAffinity } } };
}

function required(...nodeSelectorTerms: unknown[]) {
  return { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
}

describe("pointer", () => {
  for (const { segments, path } of [
    { segments: [], path: "" },
    {
      segments: ["metadata", "annotations", "berth.dev/claim"],
      path: "/metadata/annotations/berth.dev~1claim",
    },
    { segments: ["a~1b", "~/", ""], path: "/a~01b/~0~1/" },
    { segments: ["terms", 0, "-"], path: "/terms/0/-" },
  ]) {
    it(`writes ${JSON.stringify(segments)} as ${JSON.stringify(path)}`, () => {
      assert.equal(pointer(...segments), path);
    });
  }
});

describe("annotate", () => {
  const entries = { "berth.dev/claim": "mysql-0", "a~b": "c" };
  for (const { name, existing, ops } of [
    {
      name: "makes the parent when there are none",
      existing: undefined,
      ops: [{ op: "add", path: "/metadata/annotations", value: entries }],
    },
    {
      name: "takes null for none",
      existing: null,
      ops: [{ op: "add", path: "/metadata/annotations", value: entries }],
    },
    {
      name: "adds to those that are there, in escapes",
      existing: { other: "x" },
      ops: [
        { op: "add", path: "/metadata/annotations/berth.dev~1claim", value: "mysql-0" },
        { op: "add", path: "/metadata/annotations/a~0b", value: "c" },
      ],
    },
    {
      name: "replaces what a copied pod brings, and leaves out what is right already",
      existing: { "berth.dev/claim": "mysql-9", "a~b": "c" },
      ops: [{ op: "add", path: "/metadata/annotations/berth.dev~1claim", value: "mysql-0" }],
    },
    { name: "has nothing to do when all is there", existing: { ...entries, other: "x" }, ops: [] },
  ]) {
    it(name, () => {
      assert.deepEqual(annotate(existing, entries), ops);
      const pod = { metadata: { name: "p", ...(existing === undefined ? {} : { annotations: existing }) } };
      assert.deepEqual(applied(pod, annotate(existing, entries)), {
        metadata: { name: "p", annotations: { ...existing, ...entries } },
      });
    });
  }

  it("does nothing without entries, not even the parent", () =>
    assert.deepEqual(annotate(undefined, {}), []));

  it("does not take an inherited name for an annotation", () => {
    assert.deepEqual(annotate({}, { constructor: "x" }), [
      { op: "add", path: "/metadata/annotations/constructor", value: "x" },
    ]);
  });

  it("for any pod: exactly the wanted annotations, and nothing else changes", () => {
    const key = fc.oneof(
      fc.constantFrom("berth.dev/claim", "a~1b", "~0", "~", "/", "//", "~~/~", "", "constructor", "-", "0"),
      fc.string({ maxLength: 8 }).filter((text) => text !== "__proto__"),
    );
    const annotations = fc.dictionary(key, fc.string({ maxLength: 8 }), { noNullPrototype: true });
    const pod = fc.record(
      {
        metadata: fc.record(
          { name: fc.string(), labels: fc.jsonValue(), annotations },
          { requiredKeys: ["name"], noNullPrototype: true },
        ),
        spec: fc.jsonValue(),
      },
      PLAIN,
    );
    fc.assert(
      fc.property(pod, annotations, (object, wanted) => {
        fc.pre(!JSON.stringify(object).includes("__proto__"));
        const before = structuredClone(object);
        const ops = annotate(object.metadata.annotations, wanted);
        const all = { ...object.metadata.annotations, ...wanted };
        const absent = object.metadata.annotations === undefined && Object.keys(wanted).length === 0;
        const metadata = { ...object.metadata, ...(absent ? {} : { annotations: all }) };
        assert.deepEqual(applied(object, ops), { ...object, metadata });
        assert.deepEqual(object, before);
      }),
    );
  });
});

describe("addNodeAffinity", () => {
  const whole = { nodeSelectorTerms: [{ matchExpressions: [BEIJING, FAST] }] };
  const key = "requiredDuringSchedulingIgnoredDuringExecution";
  for (const { name, pod, ops } of [
    {
      name: "makes the tree from affinity on",
      pod: { spec: {} },
      ops: [{ op: "add", path: "/spec/affinity", value: { nodeAffinity: { [key]: whole } } }],
    },
    {
      name: "makes the tree from nodeAffinity on",
      pod: { spec: { affinity: { podAffinity: {} } } },
      ops: [{ op: "add", path: "/spec/affinity/nodeAffinity", value: { [key]: whole } }],
    },
    {
      name: "makes the required part beside the preferred one",
      pod: podWith({ preferredDuringSchedulingIgnoredDuringExecution: [] }),
      ops: [{ op: "add", path: REQUIRED, value: whole }],
    },
    {
      name: "takes null for absent",
      pod: { spec: { affinity: null } },
      ops: [{ op: "add", path: "/spec/affinity", value: { nodeAffinity: { [key]: whole } } }],
    },
    {
      name: "narrows every alternative",
      pod: podWith(required({ matchExpressions: [FAST] }, { matchFields: [{ key: "metadata.name" }] })),
      ops: [
        { op: "add", path: `${REQUIRED}/nodeSelectorTerms/0/matchExpressions/-`, value: BEIJING },
        { op: "add", path: `${REQUIRED}/nodeSelectorTerms/1/matchExpressions`, value: [BEIJING, FAST] },
      ],
    },
    {
      name: "leaves an empty term empty, which matches no node",
      pod: podWith(required({}, { matchExpressions: [] }, null, { matchExpressions: [], matchFields: [] })),
      ops: [],
    },
    {
      name: "leaves a list without alternatives to the API server, which refuses it",
      pod: podWith(required()),
      ops: [],
    },
    { name: "leaves a required part without a list, too", pod: podWith({ [key]: {} }), ops: [] },
    {
      name: "says nothing twice",
      pod: podWith(required({ matchExpressions: [BEIJING, { key: "x", operator: "Exists" }, FAST] })),
      ops: [],
    },
  ]) {
    it(name, () => {
      assert.deepEqual(addNodeAffinity(pod, [BEIJING, FAST]), ops);
      applied(pod, addNodeAffinity(pod, [BEIJING, FAST]));
    });
  }

  it("makes a spec where there is none", () => {
    for (const bare of [{ kind: "Pod" }, { kind: "Pod", spec: null }]) {
      const ops = addNodeAffinity(bare, [{ key: "zone", operator: "In", values: ["a"] }]);
      assert.deepEqual(
        ops.map(({ path }) => path),
        ["/spec"],
      );
      applyAndVerify(bare, ops);
    }
  });

  it("does nothing without expressions", () => assert.deepEqual(addNodeAffinity({ spec: {} }, []), []));

  it("changes many alternatives in one operation", () => {
    const terms = Array.from({ length: 1_000 }, (_, i) => ({
      matchExpressions: [{ ...FAST, key: `k${i}` }],
    }));
    const pod = { spec: { affinity: { nodeAffinity: { [key]: { nodeSelectorTerms: [{}, ...terms] } } } } };
    const path = `/spec/affinity/nodeAffinity/${key}/nodeSelectorTerms`;
    const value = terms.map((term) => ({ matchExpressions: [...term.matchExpressions, BEIJING] }));
    const ops = addNodeAffinity(pod, [BEIJING]);
    assert.deepEqual(ops, [{ op: "replace", path, value: [{}, ...value] }]);
    applied(pod, ops);
  });

  it("for any pod: a node fits exactly if it did before and every expression holds", () => {
    const expression = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      operator: fc.constant("Exists" as const),
    });
    const term = fc.record(
      {
        matchExpressions: fc.array(expression, { maxLength: 3 }),
        matchFields: fc.array(expression, { maxLength: 1 }),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
    const affinity = fc.record(
      {
        podAffinity: fc.constant({ keep: 1 }),
        nodeAffinity: fc.record(
          {
            requiredDuringSchedulingIgnoredDuringExecution: fc.record(
              {
                nodeSelectorTerms: fc.array(term, { minLength: 1, maxLength: 3 }),
              },
              PLAIN,
            ),
            preferredDuringSchedulingIgnoredDuringExecution: fc.constant([{ keep: 2 }]),
          },
          { requiredKeys: [], noNullPrototype: true },
        ),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
    const pod = fc.record(
      {
        metadata: fc.constant({ name: "p" }),
        spec: fc.record(
          { affinity, nodeName: fc.constant("keep") },
          { requiredKeys: ["nodeName"], noNullPrototype: true },
        ),
      },
      PLAIN,
    );
    const labels = fc.subarray(["a", "b", "c"]);
    fc.assert(
      fc.property(pod, fc.array(expression, { maxLength: 2 }), labels, (object, wanted, node) => {
        const after = applied(object, addNodeAffinity(object, wanted));
        const pendingClaims = wanted.every((one) => node.includes(one.key));
        assert.equal(fits(after, node), fits(object, node) && pendingClaims);
        assert.deepEqual(withoutRequired(after), withoutRequired(object));
      }),
    );
  });
});

interface Term {
  matchExpressions?: { key: string }[];
  matchFields?: { key: string }[];
}
interface Pod {
  spec: {
    affinity?: {
      nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms: Term[] } };
    };
  };
}

/** The scheduler's rule: terms are alternatives, an empty one matches nothing, no required part matches all. */
function fits(pod: unknown, node: readonly string[]): boolean {
  const affinity = (pod as Pod).spec.affinity?.nodeAffinity;
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined) return true;
  return terms.some((term) => {
    const all = [...(term.matchExpressions ?? []), ...(term.matchFields ?? [])];
    return all.length > 0 && all.every((one) => node.includes(one.key));
  });
}

/** The pod without what addNodeAffinity may write, and without parents that this leaves empty. */
function withoutRequired(pod: unknown): unknown {
  return JSON.parse(JSON.stringify(pod), (key, value: unknown) => {
    const emptied = (key === "affinity" || key === "nodeAffinity") && Object.keys(value ?? {}).length === 0;
    return key === "requiredDuringSchedulingIgnoredDuringExecution" || emptied ? undefined : value;
  });
}
