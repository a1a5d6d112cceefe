// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { addr, claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { formerUse } from "../backend/container-words.ts";
import { withEmbeddedBackend } from "../backend/embedded-backend.ts";
import { Folder } from "../testing/folder.ts";
import { untilMoved } from "./hand-over.ts";
import { movesHere, triesHere } from "./hand-over-here.ts";

const USE =
  "container e3f0c1d2a4b5 may have 10.20.0.70 still: cni-ipam-etcd gave it, and no host was told that this container has ended";

describe("berthctl release of a claim that an import has made", () => {
  const address = addr("10.20.0.70");
  const name = formerClaimName({ network: "lan", containerID: "e3f0c1d2a4b5c6d7" }, address);
  const identity = { kind: "Pod", apiVersion: "v1", name };
  const kept = claimRecord({ namespace: "default", name, identity, handMade: true, addresses: [address] });
  const contents = { pools: [DB_POOL], claims: [kept], reservations: reservationsOf(kept) };

  it("warns of the container, which no host knows, and not where anybody may have called a claim so", async (t) => {
    const data = await Folder.of(t, contents);
    for (const more of [["--dry-run"], []]) {
      const { code, stderr } = await data.call("release", "10.20.0.70", ...more);
      assert.deepEqual([code, stderr], [0, ""]);
    }
    assert.equal(formerUse(kept, "etcd"), USE);
  });

  for (const dryRun of [true, false])
    it(`warns of it, too, where another claim has the address from then on${dryRun ? ", on a dry run" : ""}`, async (t) => {
      const data = await Folder.of(t, contents);
      const out = { stdout: "", stderr: "" };
      const context = data.context(out);
      const code = await withEmbeddedBackend(context, "write", async ({ store, admitted: world }) => {
        const whole = { store, world, namespace: "default", node: "", claims: async () => [] };
        const place = { place: "etcd", uses: async () => [], giveBack: () => assert.fail() } as const;
        const mover = dryRun ? triesHere({ world }) : movesHere({ world });
        const wanted = {
          operand: "10.20.0.70",
          to: "web",
          namespace: undefined,
          force: false,
          evenIfAlive: false,
          dryRun,
        };
        return await untilMoved(context.io, { ...whole, ...place }, wanted, mover);
      });
      assert.deepEqual([code, out.stderr], [0, `Warning: ${USE}\n`]);
    });
});
