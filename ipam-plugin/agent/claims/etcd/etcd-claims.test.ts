// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError } from "../../../../allocator/base/errors.ts";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import { LIVE } from "../../testing/claims-bench.ts";
import { claimResult, ScriptedClaims } from "../../testing/node-bench.ts";
import type { AttachmentKey, AttachRequest } from "../claim-source.ts";
import { EtcdClaims } from "./etcd-claims.ts";
import { formerNotice } from "./former-containers.ts";

const REQUEST: AttachRequest = {
  pod: { namespace: "default", name: "c-1", uid: "" },
  attachment: { network: "lan", containerID: "box", interface: "eth0" },
  pools: ["lan"],
  addresses: [],
  annotations: undefined,
};
const AWAY = new BerthError("STORE_UNAVAILABLE", "etcd at http://a:2379 cannot be reached");

function bench() {
  const scripted = new ScriptedClaims();
  const presence = { isOwn: true };
  const former: { container: AttachmentKey; isKnown: boolean }[] = [];
  const releaseFormer = async (end: (typeof former)[number]) => void former.push(end);
  const deps = { presence, releaseFormer, clock: new ManualClock(), log: noopLogger };
  const claims = new EtcdClaims({ claims: scripted, ...deps });
  return { scripted, presence, claims, former, deps };
}

describe("EtcdClaims", () => {
  it("says of an ADD that cannot be proven which pool, what cannot be reached, and what to do", async () => {
    const { scripted, claims } = bench();
    scripted.answers.set("default/c-1", AWAY);
    const words =
      'no address of pool "lan" can be proven free: etcd at http://a:2379 cannot be reached; containers that run keep theirs; make etcd reachable from this host, and start the container again';
    for (const verb of [
      () => claims.find(REQUEST, LIVE),
      () => claims.attach({ kind: "found", claim: "default/c-1", token: "" }, REQUEST, LIVE),
    ]) {
      await assert.rejects(verb, (error: unknown) => error instanceof BerthError && error.message === words);
    }
  });

  it("leaves networks alone that name no pool", async () => {
    const { scripted, claims } = bench();
    assert.deepEqual(await claims.find({ ...REQUEST, pools: [] }, LIVE), { kind: "unclaimed" });
    assert.equal(scripted.asked.length, 0);
  });

  it("takes nothing for left behind that an ADD is making, or that may be another host's", async () => {
    const { scripted, presence, claims } = bench();
    scripted.used = ["default/c-1", "default/c-2"];
    assert.deepEqual(claims.inUse(), scripted.used);
    const gate = Promise.withResolvers<void>();
    scripted.finding = gate.promise;
    scripted.answers.set("default/c-1", claimResult("default/c-1", "10.0.0.1/24"));
    const finding = claims.find(REQUEST, LIVE);
    assert.deepEqual(claims.inUse(), ["default/c-2"]);
    await claims.absent("default/c-1");
    gate.resolve();
    await finding;
    assert.deepEqual(claims.inUse(), scripted.used);
    presence.isOwn = false;
    assert.deepEqual(claims.inUse(), []);
    await claims.absent("default/c-2");
    assert.deepEqual(scripted.freed, []);
  });

  it("does not hold the start of an agent up until etcd was told of its containers", async () => {
    const { scripted, claims } = bench();
    const notice = { claim: "default/c-1", pod: REQUEST.pod, attachment: REQUEST.attachment };
    await claims.attached(notice);
    await claims.close();
    assert.deepEqual(scripted.known, [notice]);
  });

  it("tells etcd of all containers but those whose claims cannot be read, and of none while it is away", async () => {
    const { scripted, claims } = bench();
    const tried: string[] = [];
    let fault = new BerthError("STATE_CORRUPT", "default/c-1 in etcd cannot be decoded");
    scripted.attached = async ({ claim }) => {
      tried.push(claim);
      if (claim === "default/c-1" || fault === AWAY) throw fault;
    };
    const tell = async (of: EtcdClaims) => {
      for (const name of ["c-1", "c-2", "c-3"])
        await of.attached({ claim: `default/${name}`, pod: REQUEST.pod, attachment: REQUEST.attachment });
      for (let turn = 0; turn < 100; turn++) await nextTurn();
      await of.close();
    };
    await tell(claims);
    assert.deepEqual(tried.splice(0), ["default/c-1", "default/c-2", "default/c-3"]);
    fault = AWAY;
    await tell(new EtcdClaims({ ...bench().deps, claims: scripted }));
    assert.deepEqual(tried, ["default/c-1"]);
  });

  it("tells of the end of a container after what was under way about its start", async () => {
    const { scripted, claims } = bench();
    const gate = Promise.withResolvers<void>();
    const reported: string[] = [];
    scripted.attached = async () => {
      await gate.promise;
      reported.push("attached");
    };
    scripted.detached = async () => void reported.push("detached");
    const notice = { claim: "default/c-1", pod: REQUEST.pod, attachment: REQUEST.attachment };
    await claims.attached(notice);
    const ended = claims.detached(notice);
    gate.resolve();
    await ended;
    assert.deepEqual(reported, ["attached", "detached"]);
    await claims.close();
  });

  it("gives back what cni-ipam-etcd gave when the end of its container is told", async () => {
    const { scripted, claims, former } = bench();
    await claims.detached(formerNotice(REQUEST.attachment));
    assert.deepEqual(former, [{ container: REQUEST.attachment, isKnown: false }]);
    assert.equal(scripted.reported.length, 0);
  });

  it("gives that back also where the container had begun again with another address", async () => {
    const { scripted, claims, former } = bench();
    const notice = { claim: "default/c-1", pod: REQUEST.pod, attachment: REQUEST.attachment };
    await claims.detached({ ...notice, remaining: notice });
    assert.deepEqual(former, [], "it was an ADD that was given up");
    await claims.detached(notice);
    assert.deepEqual(former, [{ container: REQUEST.attachment, isKnown: true }]);
    assert.equal(scripted.reported.length, 2);
  });
});
