// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parsed, poolRecord } from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import type { Pool, PoolSpec } from "./pool.ts";
import { type ChoiceInput, choosePools } from "./pool-choice.ts";

let subnets = 0;

/** A pool of addresses of its own, with blocks. */
function pool(name: string, over: Partial<PoolSpec> = {}): Pool {
  const cidr = `10.${++subnets % 250}.0.0/24`;
  return parsed(poolRecord(name, cidr, { blockSize: { ipv4: 28 }, ...over }));
}

const POD: ChoiceInput = {
  namespace: "shop",
  namespaceLabels: { "kubernetes.io/metadata.name": "shop", tier: "web" },
  podLabels: { app: "till" },
  nodeLabels: { zone: "beijing" },
};

const select = (key: string, value: string) => ({ matchLabels: { [key]: value } });

/** by: pools, or the refusal. */
function said(pools: readonly Pool[], over: Partial<ChoiceInput> = {}): string {
  const choice = choosePools(pools, { ...POD, ...over });
  if (choice === undefined) return "none";
  if (isRefusal(choice)) return `${choice.code}: ${choice.message}`;
  return `${choice.by}: ${choice.pools.map(({ name }) => name).join(" ")}`;
}

const WEB = pool("web", { namespaceSelector: select("tier", "web") });
const TILL = pool("till", { podSelector: select("app", "till"), priority: 5 });
const BEIJING = pool("beijing", { nodeSelector: select("zone", "beijing") });
const SHANGHAI = pool("shanghai", { nodeSelector: select("zone", "shanghai") });
const REST = pool("rest", { default: true });
const NAMED = pool("named");
const ALL = [WEB, TILL, BEIJING, SHANGHAI, REST, NAMED];

describe("the pools of a pod that asks for nothing", () => {
  it("are those that select it, by priority, then by name", () => {
    assert.equal(said(ALL), "selectors: till beijing web");
    assert.equal(said(ALL.toReversed()), "selectors: till beijing web");
    assert.equal(said(ALL, { podLabels: {} }), "selectors: beijing web");
    assert.equal(said(ALL, { podLabels: {}, nodeLabels: { zone: "shanghai" } }), "selectors: shanghai web");
  });

  it("must match in everything that a pool says", () => {
    const both = pool("both", { namespaceSelector: select("tier", "web"), podSelector: select("app", "x") });
    assert.equal(said([both]), "none");
    assert.equal(said([both], { podLabels: { app: "x" } }), "selectors: both");
    assert.equal(said([pool("any", { namespaceSelector: {} })]), "selectors: any");
  });

  it("are the default where nothing selects it, and none where there is none", () => {
    const nobody = { namespaceLabels: {}, podLabels: {}, nodeLabels: {} };
    assert.equal(said(ALL, nobody), "default: rest");
    const closed = pool("a", { default: true, namespaceSelector: select("tier", "db") });
    const second = pool("z", { default: true });
    assert.equal(said([closed, second, REST], nobody), "default: rest");
    assert.equal(said([second, pool("low", { default: true, priority: -1 })], nobody), "default: z");
    assert.equal(said([NAMED, SHANGHAI]), "none");
  });

  it("have blocks, are open, and ask for no service account", () => {
    const selector = { namespaceSelector: {} };
    const without = parsed(poolRecord("uncut", "10.251.0.0/24", selector));
    const guarded = pool("guarded", { ...selector, authorization: "ServiceAccount" });
    assert.equal(said([without, guarded, pool("off", { ...selector, disabled: true })]), "none");
    assert.equal(said([without, WEB]), "selectors: web");
  });
});

describe("the pools that a network names", () => {
  it("come before those that select the pod, in their order, as far as they are open to it", () => {
    assert.equal(said(ALL, { network: ["named", "shanghai", "web"] }), "network: named web");
    assert.equal(said(ALL, { network: [] }), "none");
    const uncut = parsed(poolRecord("uncut", "10.251.0.0/24"));
    assert.equal(said([uncut], { network: ["uncut"] }), "network: uncut");
  });

  it("are refused in words where none is", () => {
    assert.equal(
      said(ALL, { network: ["shanghai"] }),
      'POOL_FORBIDDEN: pool "shanghai" is for nodes with other labels than this one\'s (its nodeSelector)',
    );
    assert.equal(
      said([WEB, TILL], { network: ["till", "wbe"] }),
      'POOL_UNKNOWN: there is no pool "wbe"; name one of "till", "web"',
    );
    assert.equal(
      said([WEB], { network: ["web"], namespaceLabels: {} }),
      'POOL_FORBIDDEN: pool "web" is not open to namespace shop',
    );
    const off = pool("off", { disabled: true });
    assert.equal(
      said([off], { network: ["off"] }),
      'POOL_DISABLED: pool "off" takes no new reservations; name another pool',
    );
    assert.equal(said([off, WEB], { network: ["off", "web"] }), "network: web");
  });
});

describe("the pools that an annotation names", () => {
  it("are fallbacks in their order; those of other nodes are passed over", () => {
    assert.equal(said(ALL, { annotation: ["shanghai", "beijing", "named"] }), "annotation: beijing named");
    assert.equal(
      said(ALL, { annotation: ["shanghai"] }),
      'POOL_FORBIDDEN: pool "shanghai" is for nodes with other labels than this one\'s (its nodeSelector)',
    );
  });

  it("must be open to the pod, and of its network", () => {
    assert.match(
      said(ALL, { annotation: ["named", "till"], podLabels: {} }),
      /^POOL_FORBIDDEN: pool "till" takes only pods/,
    );
    const guarded = pool("guarded", { authorization: "ServiceAccount" });
    assert.match(
      said([guarded], { annotation: ["guarded"] }),
      /^POOL_FORBIDDEN: pool "guarded" is for pods that/,
    );
    assert.equal(said(ALL, { annotation: ["web"], network: ["named", "web"] }), "annotation: web");
    assert.equal(
      said(ALL, { annotation: ["web", "till"], network: ["named", "web"] }),
      'POOL_FORBIDDEN: pool "till" is not one of its network, which has "named", "web"; name one of those, or none',
    );
  });
});

describe("the families of a pod that asks for nothing", () => {
  const families = (pools: readonly Pool[], over: Partial<ChoiceInput> = {}) => {
    const choice = choosePools(pools, { ...POD, ...over });
    return choice === undefined || isRefusal(choice) ? [] : choice.families;
  };
  const four = pool("four", { namespaceSelector: {} });
  const six = parsed(poolRecord("six", "fd00::/64", { blockSize: { ipv6: 122 }, namespaceSelector: {} }));
  const dual = poolRecord("dual", ["10.252.0.0/24", "fd01::/64"], { namespaceSelector: {} });

  it("are those of the first pool that selects it, and all of those that are named", () => {
    assert.deepEqual(families([four, six]), ["IPv4"]);
    assert.deepEqual(families([four, six], { annotation: ["six", "four"] }), ["IPv4", "IPv6"]);
    assert.deepEqual(families([four, six], { network: ["six"] }), ["IPv6"]);
  });

  it("are those that there are blocks of; of a pool without blocks all", () => {
    const half = parsed({ ...dual, spec: { ...dual.spec, blockSize: { ipv6: 122 } } });
    assert.deepEqual(families([half]), ["IPv6"]);
    assert.deepEqual(families([parsed(dual)], { network: ["dual"] }), ["IPv4", "IPv6"]);
  });
});

/** Alone and by name it serves the pod, and whatever lists there are have it. */
function isOpen(one: Pool, pod: ChoiceInput): boolean {
  const alone = choosePools([one], { ...pod, network: [one.name], annotation: [one.name] });
  const lists = [pod.network, pod.annotation].filter((list) => list !== undefined && list.length > 0);
  return alone !== undefined && !isRefusal(alone) && lists.every((list) => list?.includes(one.name));
}

describe("any choice", () => {
  it("names open pools alone, at least one, whatever order they come in", () => {
    const names = ALL.map(({ name }) => name);
    const some = fc.option(fc.uniqueArray(fc.constantFrom(...names, "gone"), { maxLength: 3 }), {
      nil: undefined,
    });
    const labels = fc.constantFrom({}, { tier: "web" }, { app: "till" }, { zone: "beijing" });
    const property = fc.property(
      fc.shuffledSubarray(ALL),
      fc.tuple(some, some, labels, labels, labels),
      (pools, [network, annotation, namespaceLabels, podLabels, nodeLabels]) => {
        const given = { ...(network && { network }), ...(annotation && { annotation }) };
        const pod = { ...POD, namespaceLabels, podLabels, nodeLabels, ...given };
        const choice = choosePools(pools, pod);
        assert.deepEqual(choosePools(pools.toReversed(), pod), choice);
        if (choice === undefined || isRefusal(choice)) return;
        assert.ok(choice.pools.length > 0 && choice.families.length > 0);
        for (const one of choice.pools) assert.ok(isOpen(one, pod), one.name);
      },
    );
    fc.assert(property);
  });
});
