// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parsed, poolRecord } from "../../test/support/fixtures.ts";
import { Fields } from "../manifest/kubernetes-object.ts";
import { nodeTermsOf } from "../manifest/pod-nodes.ts";
import { mayRunOn, type NodeFacts } from "../model/node-terms.ts";
import { type LabelSelector, matches } from "../pool/label-selector.ts";
import { type NodeFit, nodeFits, withoutNodeNow } from "./node-fit.ts";

const KEYS = ["zone", "disk"];
/** 7 is in no expression: a value that nobody thought of. */
const VALUES = ["1", "2", "3", "7"];

const expression = (operators: readonly string[]) =>
  fc
    .record({
      key: fc.constantFrom(...KEYS),
      operator: fc.constantFrom(...operators),
      values: fc.uniqueArray(fc.constantFrom("1", "2", "3"), { minLength: 1, maxLength: 2 }),
    })
    .map((one) => (one.operator.includes("Exist") ? { key: one.key, operator: one.operator } : one));
const ANY = ["In", "NotIn", "Exists", "DoesNotExist"];

const podSpec = fc.record(
  {
    nodeName: fc.constantFrom("node-0", "node-5"),
    nodeSelector: fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom("1", "2", "3")),
    terms: fc.array(
      fc.record({
        matchExpressions: fc.array(expression([...ANY, "Gt", "Lt"]), { minLength: 1, maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
);

const selector = fc.record({ matchExpressions: fc.array(expression(ANY), { maxLength: 3 }) });

/** Every node that there could be, by these labels. */
const EVERY: readonly NodeFacts[] = [undefined, ...VALUES].flatMap((zone, i) =>
  [undefined, ...VALUES].map((disk, j) => ({
    name: `node-${5 * i + j}`,
    labels: { ...(zone === undefined ? {} : { zone }), ...(disk === undefined ? {} : { disk }) },
  })),
);

function fitOf(spec: object, nodeSelector: object, known?: readonly NodeFacts[]): NodeFit | undefined {
  const { terms: nodeSelectorTerms, ...rest } = spec as { terms?: unknown };
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  const terms = nodeTermsOf(
    new Fields(nodeSelectorTerms === undefined ? rest : { ...rest, affinity: { nodeAffinity: required } }),
  );
  if (terms === undefined) return undefined;
  const pool = parsed(poolRecord("db", "10.0.0.0/24", { nodeSelector: nodeSelector as LabelSelector }));
  const nodes = known === undefined ? { terms } : { terms, known: () => known };
  const isThere = EVERY.some(
    (node) => mayRunOn(terms, node) && matches(nodeSelector as LabelSelector, node.labels),
  );
  const [fit] = nodeFits(nodes, [pool]);
  if (known === EVERY) assert.equal(fit === "now", isThere);
  else if (fit === "never") assert.ok(!isThere || known !== undefined);
  return fit;
}

describe("where a pod may run and where a pool is for", () => {
  it("exclude each other only if no node could be both", () => {
    fc.assert(
      fc.property(podSpec, selector, (spec, nodeSelector) => {
        const fit = fitOf(spec, nodeSelector);
        const all = fitOf(spec, nodeSelector, EVERY);
        // of values that are numbers, those that Gt and Lt leave may be none of these few
        if (fit === "never") assert.notEqual(all, "now");
        else if (!JSON.stringify(spec).match(/Gt|Lt|nodeName/)) assert.notEqual(all, "never");
      }),
      { numRuns: 3_000 },
    );
  });

  it("are told from the nodes that there are, of which one is enough", () => {
    const at = (name: string, zone: string) => ({ name, labels: { zone, disk: "1" } });
    const pool = { matchLabels: { zone: "2" } };
    const disk = { nodeSelector: { disk: "1" } };
    assert.equal(fitOf(disk, pool, [at("a", "1"), at("b", "2")]), "now");
    assert.equal(fitOf(disk, pool, [at("a", "1")]), "later");
    assert.equal(fitOf(disk, pool, []), "later");
    assert.equal(fitOf(disk, pool), "now");
    assert.equal(fitOf({ nodeSelector: { zone: "1" } }, pool), "never");
  });

  it("are settled by the node's labels for a pod that names its node, if the node is known", () => {
    const pool = { matchLabels: { zone: "2" } };
    const known = [{ name: "a", labels: { zone: "1" } }];
    assert.equal(fitOf({ nodeName: "a" }, pool, known), "never");
    assert.equal(fitOf({ nodeName: "b" }, pool, known), "later");
    assert.equal(fitOf({ nodeName: "a" }, { matchLabels: { zone: "1" } }, known), "now");
  });

  it("say nothing by what the API server refuses", () => {
    for (const terms of [[], [{}], [{ matchExpressions: [{ key: "zone", operator: "Is" }] }]])
      assert.equal(fitOf({ terms }, { matchLabels: { zone: "2" } }), undefined);
  });
});

describe("the nodes that there are", () => {
  const zoned = (zone: string) =>
    parsed(poolRecord(`of-${zone}`, "10.0.0.0/24", { nodeSelector: { matchLabels: { zone } } }));
  const known = () => [
    { name: "a", labels: { zone: "1", disk: "1" } },
    { name: "b", labels: { zone: "2" } },
  ];

  it("put a pool that none of them is of behind the others, for a pod that may run anywhere, too", () => {
    const all = parsed(poolRecord("all", "10.1.0.0/24"));
    const both = parsed(
      poolRecord("both", "10.2.0.0/24", {
        nodeSelector: { matchExpressions: [{ key: "zone", operator: "In", values: ["2", "3"] }] },
      }),
    );
    const pools = [zoned("3"), all, both];
    assert.deepEqual(nodeFits({ known }, pools), ["later", "now", "now"]);
    assert.deepEqual(nodeFits({ known: () => undefined }, pools), ["now", "now", "now"]);
    assert.deepEqual(nodeFits(undefined, pools), ["now", "now", "now"]);
  });

  it("are not all compared with all pools for a pod that may run anywhere", () => {
    let walked = 0;
    const known = function* () {
      for (let i = 0; i < 5_000; i++) {
        walked++;
        yield { name: `node-${i}`, labels: { rack: "1" } };
      }
    };
    const pools = Array.from({ length: 50 }, (_, n) =>
      parsed(poolRecord(`p${n}`, `10.${n}.0.0/24`, { nodeSelector: { matchLabels: { rack: `${n}` } } })),
    );
    const fits = nodeFits({ known }, pools.slice(0, 2));
    assert.deepEqual([...fits], ["now", "now"], "5,000 are more than are looked at");
    walked = 0;
    nodeFits({ known }, pools);
    assert.ok(walked < 5_000, `${walked} nodes`);
  });

  it("are named by what they lack, if a pod with these addresses waits for one", () => {
    const terms = nodeTermsOf(new Fields({ nodeSelector: { disk: "1" } }));
    assert.ok(terms);
    const pending = ": the pod stays Pending until one has";
    assert.equal(
      withoutNodeNow({ known }, [zoned("3")]),
      `pool "of-3" is for nodes with zone=3, and no node has that now${pending}`,
    );
    assert.equal(
      withoutNodeNow({ terms, known }, [zoned("2")]),
      `pool "of-2" is for nodes with zone=2, and no node where the pod may run has that now${pending}`,
    );
    assert.equal(
      withoutNodeNow({ known }, [zoned("1"), zoned("2")]),
      `pool "of-1" is for nodes with zone=1, pool "of-2" is for nodes with zone=2, and no node has all of that now${pending}`,
    );
    assert.equal(withoutNodeNow({ terms, known }, [zoned("1")]), undefined);
    assert.equal(withoutNodeNow({ terms }, [zoned("3")]), undefined);
    assert.equal(withoutNodeNow({ terms, known }, [parsed(poolRecord("all", "10.1.0.0/24"))]), undefined);
  });
});
