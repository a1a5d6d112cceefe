// SPDX-License-Identifier: Apache-2.0
// Everything of Berth is replaced, one part after the other, while pods come and go. BERTH_LOAD_SECONDS makes it longer.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { POOLS } from "../../kube/api/resource.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { SeededRandom } from "../support/random.ts";
import { runsOf } from "../support/runs.ts";
import { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import type { Actor } from "./chaos-actors.ts";
import { appear, leave, type Stage } from "./chaos-acts.ts";
import { ChaosApi } from "./chaos-api.ts";
import { NODES } from "./chaos-cluster.ts";
import { berthctlCheck, untilLeft } from "./chaos-end.ts";
import { ExpectedUse } from "./chaos-expected.ts";
import { ChaosKubelets } from "./chaos-kubelets.ts";
import * as roles from "./chaos-roles.ts";
import { ChaosTally } from "./chaos-tally.ts";
import type { ControlPlane } from "./plane.ts";
import { makeNode } from "./replica-objects.ts";
import { type RollingWebhook, startRollingPlane } from "./rolling-webhook.ts";

const SECONDS = Number(process.env["BERTH_LOAD_SECONDS"] ?? runsOf(40, 10));
const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);
const GONE_MS = 120_000;
const BETWEEN_MS = 500;
/** What is said when a busy machine's binder, review, API server or list has not come within its time, whoever is upgraded. */
const LATE =
  / is not bound to pod .* in 5 s;| is not known on node .* in 5 s;|are not loaded: the API server has not|did not decide within|does not answer/;
/**
 * A review came on an idle connection as the other end closed it, which HTTP/1.1 cannot prevent (RFC 9112, 9.5): at most one for each
 * replica that is replaced.
 */
const CROSSED = /failed calling webhook .*: (EOF|write: broken pipe|read: connection reset by peer)/;

/**
 * Pods of the role one after the other, and more than one sandbox for each: as it goes when nothing else goes wrong.
 * Nobody here wants what another one has, so nothing may be refused. Each stays on its node: one that moves waits for word
 * from the node that it left, whose agent may be the one that is away.
 */
function dweller(role: roles.Role, node: string): Actor {
  return async (stage, stop) => {
    const { kubelets, random } = stage;
    while (!stop.aborted) {
      const life = await appear(stage, role, node);
      if (life === undefined) return;
      let { box } = life;
      for (let n = random.below(3); n > 0 && !stop.aborted; n--) {
        await pause(random.below(500));
        await kubelets.down(box);
        box = await kubelets.up(box.of, box.node);
      }
      await leave(stage, { role, box });
    }
  };
}

const CAST = NODES.flatMap((node, at) => [
  ...[0, 1].map((n) => dweller(roles.pinned(`pin-${at}-${n}`, `10.20.0.18${2 * at + n}`), node)),
  ...[0, 1].map((n) => dweller(roles.anonymous(`any-${at}-${n}`), node)),
]);

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("an upgrade of everything", () => {
    let plane: ControlPlane;
    let webhook: RollingWebhook;
    const nodes = new Map<string, AgentNode>();
    const [expected, tally] = [new ExpectedUse(), new ChaosTally()];
    before(async () => {
      await buildPlugin();
      ({ plane, webhook } = await startRollingPlane({ count: 3 }));
      const connection = plane.connect();
      await webhook.start();
      for (const name of NODES) {
        await makeNode(connection, name);
        const node = await AgentNode.make(name, plane.kubeConfig());
        nodes.set(name, node);
        await node.start();
      }
    });
    after(async () => {
      for (const node of nodes.values()) await node.remove();
      await webhook?.close();
      await plane?.close();
    });

    /** Replicas one after the other, then the agents; again and again. */
    async function upgrade(until: number): Promise<number> {
      let rounds = 0;
      for (; rounds === 0 || Date.now() < until; rounds++) {
        for (const replica of webhook.all) {
          await webhook.replace(replica, "SIGTERM");
          await pause(BETWEEN_MS);
        }
        for (const node of nodes.values()) {
          await node.stop("SIGTERM");
          await node.start();
          await pause(BETWEEN_MS);
        }
      }
      return rounds;
    }

    it("no address twice, no pod refused, no ADD and no DEL failed but for want of time, and the books are in order", async (t) => {
      t.diagnostic(`BERTH_SEED=${SEED}`);
      const api = new ChaosApi(plane.connect(), tally);
      const kubelets = new ChaosKubelets(nodes, expected, tally);
      // room for what a fast machine's pods leave behind while an agent, or who leads, is away and gives nothing back
      const range = { ...roles.RANGE, cidr: "10.20.0.0/20" };
      const spec = { ranges: [range], cooldown: "1s", reserved: ["10.20.0.150-10.20.0.199"] };
      await api.make(POOLS, { name: roles.POOL }, { spec });
      const stage = (n: number): Stage => {
        return { api, expected, tally, kubelets, sets: new Map(), random: new SeededRandom(SEED + n) };
      };
      const stop = new AbortController();
      const actors = Promise.all(CAST.map((act, n) => act(stage(n), stop.signal)));
      actors.catch(() => stop.abort());
      const rounds = await upgrade(Date.now() + SECONDS * 1_000);
      stop.abort();
      await actors;
      await kubelets.settled();
      const refused = expected.story.split("\n").filter((line) => / refused[ :]/.test(line));
      const failed = [...refused, ...api.unanswered];
      const late = failed.filter((line) => LATE.test(line)).length;
      const crossed = failed.filter((line) => CROSSED.test(line)).length;
      const longest = `the longest ADD ${kubelets.longestMs} ms, ${late} too late, ${crossed} crossed a close`;
      console.log(`${rounds} upgrades in ${SECONDS} s and more: ${tally.line()}, ${longest}`);
      assert.deepEqual(expected.wrongs, []);
      assert.deepEqual(
        failed.filter((line) => !LATE.test(line) && !CROSSED.test(line)),
        [],
        webhook.logs(),
      );
      assert.ok(crossed <= rounds * webhook.all.length, `${crossed} connections were closed under a review`);
      assert.ok(tally.of("ADD") >= SECONDS && tally.of("DEL") >= SECONDS, tally.line());
      assert.ok(late < tally.of("ADD") / 2, `${tally.line()}, ${late} too late`);
      await untilLeft(plane, [], GONE_MS);
      await eventually(
        "berthctl check finds nothing",
        async () => ((await berthctlCheck(plane)).startsWith("0 ok") ? true : undefined),
        GONE_MS,
      );
    });
  });
}
