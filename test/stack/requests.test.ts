// SPDX-License-Identifier: Apache-2.0
// What pods ask for and what they are given: reviews over TLS, then ADDs through build/berth, one stack as a process.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { claim, deployment, generatedPod, namespace, pod, pool, statefulSet } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import type { Manifest } from "../support/review.ts";
import { failureOf, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { MANIFESTS, runtimeOn } from "./shop.ts";

describe("requests", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  const runtimeWith = (ipam: Readonly<Record<string, unknown>>) => runtimeOn(site.stack, ipam);

  it("E0100 a pod pinned in Calico's words has that address", async () => {
    const annotations = { "cni.projectcalico.org/ipAddrs": '["10.20.0.51"]' };
    const { kept, sandbox, addresses } = await site.run(pod("shop", "calico", annotations));
    assert.deepEqual(addresses, ["10.20.0.51/24"]);
    assert.equal(kept.metadata.annotations?.["berth.dev/addresses"], "10.20.0.51");
    assert.deepEqual(await site.runtime.add(sandbox), {
      kind: "succeeded",
      result: { cniVersion: "1.0.0", ips: [{ address: "10.20.0.51/24", gateway: "10.20.0.100" }], dns: {} },
    });
  });

  it("E0101 a dual-stack pod has one address of each family", async () => {
    const { addresses } = await site.run(pod("shop", "dual", { "berth.dev/ips": "10.20.0.52,fd00:20::52" }));
    assert.deepEqual(addresses, ["10.20.0.52/24", "fd00:20::52/64"]);
    const any = await site.run(pod("shop", "any-dual", { "berth.dev/pools": "duo" }));
    assert.deepEqual(
      any.addresses.map((cidr) => cidr.split("/")[1]),
      ["24", "64"],
    );
  });

  it("E0103 a pod of a namespace with a default pool has an address of it, unless it names another", async () => {
    const silent = await site.run(pod("lab", "silent"));
    assert.match(silent.addresses.join(), /^10\.40\.0\.\d+\/28$/);
    const named = await site.run(pod("lab", "named", { "berth.dev/pools": "web" }));
    assert.match(named.addresses.join(), /^10\.30\.0\.\d+\/24$/);
  });

  it("E0104 pods from generateName are found again by their tokens, each its own", async () => {
    const manifest = generatedPod("shop", "batch-", { "berth.dev/pools": "web" });
    const running = await Promise.all([site.run(manifest), site.run(manifest), site.run(manifest)]);
    for (const { kept, addresses } of running) {
      assert.equal(`${kept.metadata.annotations?.["berth.dev/addresses"]}/24`, addresses[0]);
    }
    assert.equal(new Set(running.flatMap(({ addresses }) => addresses)).size, 3);
  });

  it("E0105 the token may come from the runtime alone, as io.kubernetes.cri.pod-annotations", async () => {
    const object = generatedPod("shop", "annotated-", { "berth.dev/pools": "web" });
    const create = { route: "/mutate/pods", operation: "CREATE", oldObject: null, dryRun: false } as const;
    const verdict = await site.api.ask({ ...create, object });
    const [patch] = verdict.patch.filter(({ path }) => path.startsWith("/metadata/annotations"));
    assert.ok(patch !== undefined, "annotations are written");
    const made = site.api.mutated(object, verdict);
    const sandbox = sandboxOf(
      { namespace: "shop", name: "annotated-7xk2p", uid: "77777777-0000-0000-0000-000000000000" },
      { annotations: made.metadata.annotations ?? {} },
    );
    const expected = `${made.metadata.annotations?.["berth.dev/addresses"]}/24`;
    assert.deepEqual(await site.runtime.attach(sandbox), [expected]);
    const other = {
      ...sandboxOf(sandbox.pod),
      annotations: { "berth.dev/claim": "c-guess", "berth.dev/token": "guess" },
    };
    const forged = { ...other, pod: { namespace: "shop", name: "forger", uid: "" } };
    assert.equal(failureOf(await site.runtime.add(forged)).code, 116, "a made-up token opens nothing");
  });

  it("E0106 a sticky pod that is deleted and created again has the address that it first got", async () => {
    const manifest = pod("shop", "report", { "berth.dev/sticky": "true", "berth.dev/pools": "web" });
    const first = await site.run(manifest);
    await site.end(first);
    await eventually("the claim is set aside", async () =>
      (await site.stack.claim("shop/report"))?.retained?.because === "deleted" ? true : undefined,
    );
    const taken = pod("shop", "thief", { "berth.dev/ips": first.addresses[0]?.split("/")[0] ?? "" });
    assert.equal((await site.api.refusal(taken)).reason, "ADDRESS_TAKEN");
    const again = await site.run(manifest);
    assert.deepEqual(again.addresses, first.addresses);
    assert.notEqual(again.kept.metadata.uid, first.kept.metadata.uid);
  });

  it("E0107 a claim made by hand has its address before the pod exists and after it is gone", async () => {
    const made = await site.api.create(
      claim("shop", "scanner", { request: { addresses: ["10.20.0.90", "fd00:20::90"] } }),
    );
    assert.equal((await site.stack.holders())["10.20.0.90"], "shop/scanner");
    const running = await site.run(pod("shop", "scanner"));
    assert.deepEqual(running.addresses, ["10.20.0.90/24", "fd00:20::90/64"]);
    const used = await site.api.delete(made);
    assert.match(
      used.kind === "refused" ? used.message : "",
      /^claim shop\/scanner is in use by pod scanner on node \S+; delete the pod first$/,
    );
    await site.end(running);
    assert.equal((await site.stack.holders())["fd00:20::90"], "shop/scanner");
    await site.api.delete(made);
    assert.equal((await site.stack.holders())["10.20.0.90"], undefined);
  });

  it("E0108 a claim made by hand for any address of a pool gets one, and its pod that one", async () => {
    await site.api.create(claim("shop", "any", { request: { pools: ["db"], families: ["IPv6"] } }));
    const held = (await site.stack.claim("shop/any"))?.addresses ?? [];
    assert.match(held.join(), /^fd00:20::/);
    assert.deepEqual((await site.run(pod("shop", "any"))).addresses, [`${held[0]}/64`]);
  });

  it("E0154 a claim made by hand keeps its addresses from a pod and a StatefulSet that ask for others", async () => {
    const names = { scan: "10.20.0.92", "scan-set-0": "10.20.0.93" };
    const made = [];
    for (const [name, address] of Object.entries(names))
      made.push(await site.api.create(claim("shop", name, { request: { addresses: [address] } })));
    const words = (name: string, has: string) =>
      `claim shop/${name} was made by hand and holds ${has}, and this asks for 10.20.0.148; ask for what the claim has, or delete the claim or change its spec.request`;
    const ips = { "berth.dev/ips": "10.20.0.148" };
    const bare = await site.api.refusal(pod("shop", "scan", ips));
    assert.deepEqual([bare.reason, bare.message], ["CLAIM_BUSY", words("scan", "10.20.0.92")]);
    const set = await site.api.refusal(statefulSet("shop", "scan-set", { replicas: 1 }, ips));
    assert.deepEqual(
      [set.reason, set.message],
      ["CLAIM_BUSY", `pod scan-set-0: ${words("scan-set-0", "10.20.0.93")}`],
    );
    const held = await site.stack.holders();
    for (const [name, address] of Object.entries(names)) assert.equal(held[address], `shop/${name}`);
    assert.equal(held["10.20.0.148"], undefined);
    const running = await site.run(pod("shop", "scan", { "berth.dev/ips": "10.20.0.92" }));
    assert.deepEqual(running.addresses, ["10.20.0.92/24"]);
    await site.end(running);
    for (const one of made) await site.api.delete(one);
    assert.deepEqual((await site.run(pod("shop", "scan", ips))).addresses, ["10.20.0.148/24"]);
  });

  it("E0109 a pod that asked and went past admission never gets another address", async () => {
    const annotations = { "berth.dev/ips": "10.20.0.95" };
    assert.deepEqual(await site.api.write(pod("shop", "sneak", annotations), { skipMutation: true }), {
      kind: "refused",
      reason: "CLAIM_MISSING",
      message:
        "pod shop/sneak asks for an address and no claim was made for it; Berth was not asked before; use: berthctl apply -f FILE",
    });
    const sandbox = sandboxOf({ namespace: "shop", name: "sneak", uid: "" }, { annotations });
    for (const ipam of [{}, { pools: ["web"] }, { ranges: [[{ subnet: "10.77.0.0/24" }]] }]) {
      assert.deepEqual(failureOf(await runtimeWith(ipam).add(sandbox)), {
        code: 116,
        msg: "pod shop/sneak asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again",
      });
    }
    assert.deepEqual(await site.stack.attachedContainers(), []);
    assert.equal(await site.stack.claim("shop/sneak"), undefined);
  });

  it("E0113 a dry run of everything says what would happen and writes nothing", async () => {
    const scanned = await site.api.create(claim("shop", "dry", { request: { addresses: ["10.20.0.110"] } }));
    const set = await site.api.create(
      statefulSet("shop", "dry-set", { replicas: 1 }, { "berth.dev/pools": "web" }),
    );
    const kept = await site.api.create(pod("shop", "dry-pod", { "berth.dev/ips": "10.20.0.111" }));
    const lab = await site.api.create(namespace("dry-lab", { annotations: { "berth.dev/pools": "web" } }));
    const spare = await site.api.create(pool("spare", ["10.90.0.0/24"]));

    const ips = { "berth.dev/ips": "10.20.0.112" };
    const rehearsed: readonly (readonly [Manifest, readonly string[]])[] = [
      [pod("shop", "dry-new", ips), ["this pod would get 10.20.0.112 from pool db"]],
      [
        pod("shop", "dry-pod", { "berth.dev/ips": "10.20.0.111" }),
        ["this pod would get 10.20.0.111 (its own)"],
      ],
      [generatedPod("shop", "dry-", ips), ["this pod would get 10.20.0.112 from pool db"]],
      [
        claim("shop", "dry-claim", { request: { addresses: ["10.20.0.112"] } }),
        ["claim shop/dry-claim would get 10.20.0.112 from pool db"],
      ],
      [
        statefulSet("shop", "dry-new", { replicas: 2 }, { "berth.dev/ips": "10.20.0.112-10.20.0.113" }),
        ["dry-new-0 would get 10.20.0.112 from pool db", "dry-new-1 would get 10.20.0.113 from pool db"],
      ],
      [deployment("shop", "dry-gate", { replicas: 2 }, { "berth.dev/ips": "10.20.0.112-10.20.0.113" }), []],
      [namespace("dry-other", { annotations: { "berth.dev/pools": "web" } }), []],
      [pool("dry-pool", ["10.91.0.0/24"]), []],
      [pool("spare", ["10.90.0.0/25"]), []],
    ];
    const rehearse = async () => {
      for (const [manifest, warnings] of rehearsed) {
        const outcome = await site.api.write(manifest, { dryRun: true });
        assert.deepEqual(
          outcome.kind === "kept" ? outcome.warnings : outcome.message,
          warnings,
          manifest.kind,
        );
      }
      for (const object of [scanned, set, kept, lab, spare]) {
        assert.equal((await site.api.delete(object, { dryRun: true })).kind, "kept", object.kind);
      }
    };
    // meanwhile the garbage collector may free what other tests have left
    await eventually("nothing was written", async () => {
      const before = await site.stack.dump();
      await rehearse();
      return (await site.stack.dump()) === before || undefined;
    });
    const refused = await site.api.write(pod("shop", "dry-new", { "berth.dev/ips": "10.20.0.110" }), {
      dryRun: true,
    });
    assert.equal(refused.kind === "refused" ? refused.reason : "", "ADDRESS_TAKEN");
  });
});
