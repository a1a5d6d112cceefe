// SPDX-License-Identifier: Apache-2.0
// What is said of a container of hosts that share an etcd, whose claim has a name that was made for it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { ClaimPlace } from "../../allocator/model/container-claim.ts";
import { addressTaken } from "../../allocator/planning/refusal-messages.ts";
import { containerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { ManualClock } from "../../test/support/clock.ts";
import {
  addr,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  parsed,
  reservationsOf,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import { claimObject } from "../../test/support/objects.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { busy, held } from "../commands/claim-in-use.ts";
import { facts } from "../testing/facts.ts";
import { Folder } from "../testing/folder.ts";
import { ManifestDryRun } from "./dry-run.ts";
import { ownIn } from "./own-requests.ts";
import { explainClaim } from "./render.ts";
import { unneeded } from "./unneeded-claims.ts";

const containerID = "e3f0c1d2a4b5c6d7";
const { name } = containerName({ network: "lan", containerID, interface: "eth0" });
const claim = claimRecord({
  namespace: "default",
  name,
  identity: { kind: "Pod", apiVersion: "v1", name },
  binding: bindingTo(name, "host-a", { podUID: "" }),
  status: { attachment: attachmentOf(name, { containerID, node: "host-a", podUID: "" }) },
});
const ended = {
  ...claim,
  status: {
    attachment: attachmentOf(name, { containerID, node: "host-a", podUID: "", detached: true }),
  },
} as const;

describe("a container of hosts that share an etcd", () => {
  it("is explained by its short id and its host", () => {
    const { text } = explainClaim(claim, facts(claim, { place: "etcd" }));
    assert.match(text, /^ {2}claim +\S+, Attached, for container e3f0c1d2a4b5, eth0$/m);
    assert.match(text, /^ {2}bound to +container e3f0c1d2a4b5 on host-a since /m);
    assert.doesNotMatch(text, /[Pp]od /);
    assert.match(
      explainClaim(ended, facts(ended, { place: "etcd" })).text,
      /^\S+ was bound to container e3f0c1d2a4b5 on host-a, whose sandbox is over\n/,
    );
    const held = { ...claim, binding: bindingTo(name, ""), status: {} };
    assert.match(
      explainClaim(held, facts(held, { place: "etcd" })).text,
      /^\S+ is held for container e3f0c1d2a4b5\n/,
    );
  });

  it("is found by check, and is no pod, nor is it released like one", async (t) => {
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
    });
    data.clock.advance(200_000);
    await withBackend(data.context(), "read", async (backend) => {
      const world = { ...backend.world, pod: async () => undefined };
      const etcd: Backend = { ...backend, place: "etcd", node: "", world };
      const claims = await backend.claims();
      const { most: own } = await ownIn([], etcd);
      const { findings } = await unneeded({ own, claims, pods: [], now: data.clock.now() }, etcd);
      assert.match(
        findings[0]?.message ?? "",
        /^claim \S+ \(container e3f0c1d2a4b5, eth0\) holds 10\.20\.0\.70, which nobody needs: container e3f0c1d2a4b5 is gone or has ended; host host-a has not said/,
      );
      const [stored] = claims;
      const fenced = async () => false;
      const refusal = stored && (await busy(stored, { ...etcd, world: { ...backend.world, fenced } }));
      assert.match(
        refusal?.message ?? "",
        /is bound to container e3f0c1d2a4b5 on host host-a, whose sandbox may be alive; stop the container first, and once it has ended, which its host does not see \(nothing was to be seen of its network namespace\), send its DEL on host host-a, or boot that host \(docs\/etcd\.md, A container whose end nobody sees\), or use --force/,
      );
    });
  });

  for (const [netns, alone] of [
    ["/run/netns/box", ""],
    [
      "/proc/17/ns/net",
      ", which it does not see by itself (a process named its network namespace: /proc/17/ns/net): send its DEL on host host-a, or boot that host (docs/etcd.md, A container whose end nobody sees)",
    ],
  ] as const) {
    it(`is not known to have ended by whoever releases its claim by force: ${netns}`, async () => {
      const { attachment } = claim.status;
      const seen = storedAs("claim", {
        ...claim,
        status: { attachment: { ...(attachment ?? assert.fail()), netns } },
      });
      const backend = (place: Backend["place"], isFenced: boolean) =>
        ({ place, uses: async () => [], world: { fenced: async () => isFenced } }) as unknown as Backend;
      const forced = async (of: typeof seen, at: Backend) => {
        const use = await held(
          of,
          at,
          { force: true, evenIfAlive: true },
          { clock: new ManualClock(), stderr: process.stderr },
        );
        return isRefusal(use) ? use : use.forced;
      };
      assert.equal(
        await forced(seen, backend("etcd", false)),
        `host host-a was not asked whether the container of claim default/${name} has ended: while that runs, whoever is given 10.20.0.70 next has it, too; and from its agent's next start on this host gives no address until it knows of that end${alone}`,
      );
      assert.equal(await forced(seen, backend("etcd", true)), undefined, "a person has said that it is gone");
      assert.equal(await forced(storedAs("claim", ended), backend("etcd", false)), undefined);
      assert.equal(await forced(seen, backend("data", false)), undefined);
    });
  }

  it("is named so to whoever asks for its address, with what frees that", () => {
    const [reservation] = reservationsOf(claim);
    const view = viewOf({ pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim) });
    const { message } = addressTaken(view, parsed(DB_POOL), addr("10.20.0.70"), reservation);
    assert.match(
      message,
      /^address 10\.20\.0\.70 in pool "db" is held by default\/c-e3f0c1d2a4b5-eth0-[0-9a-f]{16} /,
    );
    assert.match(message, / \(container e3f0c1d2a4b5, eth0\); free nearby: /);
    assert.match(message, /; or stop container e3f0c1d2a4b5 on host host-a, and if its claim stays: /);
  });

  it("is named so where an import keeps its address, which it may have", () => {
    const address = addr("10.20.0.70");
    const former = formerClaimName({ network: "lan", containerID }, address);
    const kept = claimRecord({
      ...{ namespace: "default", name: former, handMade: true, addresses: [address] },
      identity: { kind: "Pod", apiVersion: "v1", name: former },
    });
    const { text } = explainClaim(kept, facts(kept, { place: "etcd" }));
    assert.match(
      text,
      /^\S+ is kept for container e3f0c1d2a4b5, to which cni-ipam-etcd gave its address; it goes back when any host is told/,
    );
    const [reservation] = reservationsOf(kept);
    const records = { pools: [DB_POOL], claims: [kept], reservations: reservationsOf(kept) };
    const taken = (place: ClaimPlace) =>
      addressTaken(viewOf({ ...records, place }), parsed(DB_POOL), address, reservation);
    const { message } = taken({ ofContainers: true });
    assert.doesNotMatch(
      taken({}).message,
      /container|cni-ipam-etcd/,
      "in a cluster anybody may have called it so",
    );
    assert.match(message, / \(container e3f0c1d2a4b5\); free nearby: /);
    assert.match(
      message,
      /; or stop container e3f0c1d2a4b5, which had it from cni-ipam-etcd, and if it has ended /,
    );
  });

  it("is named so by explain of a manifest that asks for its address, and in no other place", async (t) => {
    const address = addr("10.20.0.70");
    const former = formerClaimName({ network: "lan", containerID }, address);
    const kept = claimRecord({
      ...{ namespace: "default", name: former, handMade: true, addresses: [address] },
      identity: { kind: "Pod", apiVersion: "v1", name: former },
    });
    const records = { pools: [DB_POOL], claims: [kept], reservations: reservationsOf(kept) };
    const data = await Folder.of(t, records);
    const wanted = granted(readObject(claimObject("printer", { request: { addresses: [address] } })));
    const told = async (place: Backend["place"]) =>
      await withBackend(data.context(), "read", async (backend) => {
        const { clock, random } = data.context().io;
        const forecast = await ManifestDryRun.on({ ...backend, place }, { clock, random });
        const [row] = await forecast.of(wanted);
        return JSON.stringify(row?.outcome);
      });
    assert.match(await told("etcd"), /stop container e3f0c1d2a4b5, which had it from cni-ipam-etcd/);
    assert.doesNotMatch(await told("data"), /container/);
  });
});
