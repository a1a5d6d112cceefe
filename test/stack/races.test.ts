// SPDX-License-Identifier: Apache-2.0
// Many ask at the same moment, over TLS, and the authority decides.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { namespace, pod, podOf, pool, statefulSet } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import type { Manifest, Verdict } from "../support/review.ts";
import { runsOf } from "../support/runs.ts";
import { sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";

const ROUNDS = runsOf(1_000);
const LATE_POOLS = runsOf(100, 20);
const CONNECTIONS = 32;
const MANIFESTS = [
  namespace("shop"),
  pool("arena", ["10.20.0.0/20"]),
  // 150 addresses
  pool("tight", [{ cidr: "10.40.0.0/24", from: "10.40.0.1", to: "10.40.0.150" }], {
    limits: { perNamespace: 150 },
  }),
];

describe("races", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }), CONNECTIONS);

  async function admit(object: Manifest): Promise<Verdict> {
    return await site.api.ask({
      route: "/mutate/pods",
      operation: "CREATE",
      object,
      oldObject: null,
      dryRun: false,
    });
  }

  function addressesIn(object: Manifest, verdict: Verdict): string {
    return site.api.mutated(object, verdict).metadata.annotations?.["berth.dev/addresses"] ?? "";
  }

  it("E0150 of two pods that ask for one address at the same moment exactly one has it, a thousand times", async () => {
    const expected: Record<string, string> = {};
    const round = async (n: number): Promise<void> => {
      const address = `10.20.${4 + Math.floor(n / 250)}.${1 + (n % 250)}`;
      const names = n % 2 === 0 ? [`left-${n}`, `right-${n}`] : [`right-${n}`, `left-${n}`];
      const verdicts = await Promise.all(
        names.map((name) => admit(pod("shop", name, { "berth.dev/ips": address }))),
      );
      const winner = names.find((_, i) => verdicts[i]?.allowed === true) ?? "nobody";
      const lost = verdicts.filter(({ allowed }) => !allowed);
      assert.equal(lost.length, 1, `${address}: ${JSON.stringify(verdicts)}`);
      assert.equal(lost[0]?.reason, "ADDRESS_TAKEN");
      const held = `address ${address} in pool "arena" is held by shop/${winner}`;
      assert.ok(lost[0]?.message.startsWith(held), `${lost[0]?.message} does not begin with ${held}`);
      expected[address] = `shop/${winner}`;
    };
    // Eight rounds at once, so that other pods' writes lie in between.
    let next = 0;
    const rounds = async (): Promise<void> => {
      while (next < ROUNDS) await round(next++);
    };
    await Promise.all(Array.from({ length: 8 }, rounds));
    assert.deepEqual(await site.stack.holders(), expected);
    assert.equal(Object.keys(await site.stack.claims("shop")).length, ROUNDS);
  });

  it("E0151 admissions of one identity at the same moment have one claim and one answer", async () => {
    const set = statefulSet("shop", "twin", { replicas: 1 }, { "berth.dev/pools": "arena" });
    for (let ordinal = 0; ordinal < 50; ordinal++) {
      const object = podOf(set, ordinal);
      const verdicts = await Promise.all([admit(object), admit(object), admit(object)]);
      const [first, ...others] = verdicts.map((verdict) => addressesIn(object, verdict));
      assert.match(first ?? "", /^10\.20\./);
      assert.deepEqual(others, [first, first]);
    }
    const claims = Object.entries(await site.stack.claims("shop")).filter(([name]) =>
      name.startsWith("twin-"),
    );
    assert.equal(claims.length, 50);
    const held = Object.values(await site.stack.holders()).filter((key) => key.startsWith("shop/twin-"));
    assert.equal(held.length, 50, "no attempt left a reservation");
  });

  it("E0152 of 200 pods that come at once to a pool of 150 as many are served as there are addresses", async () => {
    const pods = Array.from({ length: 200 }, (_, n) =>
      pod("shop", `crowd-${n}`, { "berth.dev/pools": "tight" }),
    );
    const outcomes = await Promise.all(pods.map((object) => site.api.write(object)));
    const refused = outcomes.filter((outcome) => outcome.kind === "refused");
    assert.equal(refused.length, 50);
    for (const { reason, message } of refused) {
      assert.equal(reason, "POOL_EXHAUSTED");
      assert.match(
        message,
        /^no free IPv4 address in pool "tight": \d+ (?:is|are) held or cooling; add a range, or release/,
      );
    }
    const kept = outcomes.flatMap((outcome) => (outcome.kind === "kept" ? [outcome.object] : []));
    const assigned = kept.map(({ metadata }) => metadata.annotations?.["berth.dev/addresses"] ?? "");
    assert.equal(new Set(assigned).size, 150);
    // Forty of them start at the same moment, and each is given what it was promised.
    const attached = await Promise.all(
      kept.slice(0, 40).map((object) => site.runtime.attach(sandboxOf(object))),
    );
    assert.deepEqual(
      attached.flat(),
      assigned.slice(0, 40).map((address) => `${address}/24`),
    );
  });

  it("E0153 a pod that comes the moment its pool is there is served, whoever else comes", async () => {
    let over = false;
    // they keep the stack at its writes, and its memory behind them
    const others = Array.from({ length: 8 }, async (_, line) => {
      for (let n = 0; !over; n++)
        await admit(pod("shop", `other-${line}-${n}`, { "berth.dev/pools": "arena" }));
    });
    const refused: unknown[] = [];
    for (let n = 1; n <= LATE_POOLS; n++) {
      const made = await site.api.write(pool(`late-${n}`, [`10.50.${n}.0/24`]));
      assert.equal(made.kind, "kept");
      const verdict = await admit(pod("shop", `late-${n}`, { "berth.dev/ips": `10.50.${n}.7` }));
      if (!verdict.allowed) refused.push(verdict);
    }
    over = true;
    await Promise.all(others);
    assert.deepEqual(refused, []);
  });
});
