// SPDX-License-Identifier: Apache-2.0
// A whole control plane under load, whose processes are killed at random moments (issue: no doubles, nothing lost).
// BERTH_SEED replays the choices, not the timing; BERTH_CHAOS_SECONDS makes it longer.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { SeededRandom } from "../support/random.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { admit, type Stage } from "./chaos-acts.ts";
import { ChaosApi, type ChaosPod } from "./chaos-api.ts";
import { CAST, clearAway, prepare, RETAINED } from "./chaos-cast.ts";
import { ChaosCluster, NODES } from "./chaos-cluster.ts";
import { disorder } from "./chaos-disorder.ts";
import { berthctlCheck, untilLeft } from "./chaos-end.ts";
import { ExpectedUse } from "./chaos-expected.ts";
import { type Box, ChaosKubelets, codeOf } from "./chaos-kubelets.ts";
import * as roles from "./chaos-roles.ts";
import { ChaosTally } from "./chaos-tally.ts";

const SECONDS = Number(process.env["BERTH_CHAOS_SECONDS"] ?? 120);
const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);
/** What the run must have done for each minute of it, on a slow and busy machine. */
const LEAST_PER_MINUTE: Readonly<Record<string, number>> = {
  ADD: 60,
  DEL: 90,
  "pod made": 40,
  restart: 4,
  powerLoss: 4,
  replace: 8,
  force: 4,
  strand: 3,
  scale: 2,
  "end etcd": 0.5,
  "end kube-apiserver": 0.5,
  "end berth-webhook-0": 0.5,
  "end berth-webhook-1": 0.5,
  "end n1": 0.5,
  "end n2": 0.5,
};
/** Until an agent has heard of what was just written. */
const HEARD_MS = 500;
/** Invariant 6, and the time in which a leader that was killed is followed by another one. */
const GONE_MS = 120_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a cluster whose processes are killed", () => {
    let cluster: ChaosCluster;
    const [expected, tally] = [new ExpectedUse(), new ChaosTally()];
    let parts: Omit<Stage, "random">;
    before(async () => {
      cluster = await ChaosCluster.open();
      const api = new ChaosApi(cluster.plane.connect(), tally);
      parts = {
        api,
        expected,
        tally,
        sets: new Map(),
        kubelets: new ChaosKubelets(cluster.nodes, expected, tally),
      };
      const spec = { ranges: [roles.RANGE], cooldown: "1s", reserved: ["10.20.0.150-10.20.0.199"] };
      await api.make(POOLS, { name: roles.POOL }, { spec });
    });
    after(async () => await cluster?.close());

    it("goes on attaching and detaching while the API server is down", async () => {
      const { api, kubelets } = parts;
      const bound: { readonly pod: ChaosPod; readonly node: string }[] = [];
      for (const [n, node] of [...NODES, ...NODES, ...NODES].entries()) {
        const pod = await admit(stage(n), roles.pinned(`calm-${n}`, `10.20.0.17${n}`), node);
        bound.push({ pod: pod ?? assert.fail(), node });
      }
      for (const { pod } of bound) await api.untilBound(pod);
      // the last two have no sandbox yet, but their agents know of them
      const boxes: Box[] = [];
      for (const { pod, node } of bound.slice(0, 4)) boxes.push(await kubelets.up(pod, node));
      await pause(HEARD_MS);
      await cluster.plane.apiServer.stop("SIGKILL");
      for (const box of boxes.splice(0)) {
        await kubelets.down(box, 2);
        boxes.push(await kubelets.up(box.of, box.node));
      }
      for (const { pod, node } of bound.slice(4)) boxes.push(await kubelets.up(pod, node));
      assert.deepEqual(
        [expected.wrongs, tally.line()],
        [[], "ADD 10, DEL 8, pod made 6"],
        "each at the first try",
      );
      await startsBlind(boxes.shift() ?? assert.fail());
      for (const box of boxes) {
        await kubelets.down(box);
        await api.deletePod(box.of, 0);
      }
      assert.deepEqual(expected.wrongs, []);
    });

    /** An agent that starts without an API server: DEL succeeds, ADD is to be tried again, and then goes on. */
    async function startsBlind(box: Box): Promise<void> {
      const { api, kubelets } = parts;
      const { of: pod, node } = box;
      const agent = cluster.nodes.get(node) ?? assert.fail();
      await agent.stop("SIGKILL");
      await agent.serve();
      await kubelets.down(box, 2);
      assert.equal(codeOf(await kubelets.add(pod, node, kubelets.newId())), 11);
      await cluster.restore();
      await kubelets.down(await kubelets.up(pod, node));
      await api.deletePod(pod, 0);
    }

    const stage = (n: number): Stage => ({ ...parts, random: new SeededRandom(SEED + n) });

    /** When the work fails, what happened is kept in a file. */
    async function recorded(work: () => Promise<void>): Promise<void> {
      try {
        await work();
      } catch (error) {
        const file = join(tmpdir(), `berth-chaos-${SEED}.log`);
        writeFileSync(file, `${expected.story}\n${cluster.logs()}`);
        throw new Error(`${String(error)}\nwhat happened is told in ${file}`, { cause: error });
      }
    }

    /** Load and disorder at once, until the time is over or something is wrong; then all runs, and everybody leaves. */
    async function live(stop: AbortController, acting: readonly Promise<void>[]): Promise<void> {
      const actors = Promise.all(acting);
      actors.catch(() => stop.abort());
      const { victims } = cluster;
      const breaking = disorder({ victims, random: new SeededRandom(SEED), expected, tally }, stop.signal);
      const until = Date.now() + SECONDS * 1_000;
      while (Date.now() < until && expected.wrongs.length === 0 && !stop.signal.aborted) await pause(100);
      stop.abort();
      await breaking;
      await cluster.restore();
      await actors;
      await parts.kubelets.settled();
    }

    it("gives no address twice, keeps what it promised, and in the end nothing is left", async (t) => {
      t.diagnostic(`BERTH_SEED=${SEED}`);
      console.log(`seed ${SEED}, ${SECONDS} s`);
      await recorded(async () => {
        await prepare(stage(0));
        const stop = new AbortController();
        await live(
          stop,
          CAST.map((act, n) => act(stage(100 + n), stop.signal)),
        );
        assert.deepEqual(expected.wrongs, []);
        await clearAway(stage(0));
        let said = "";
        const ms = await untilLeft(cluster.plane, RETAINED, GONE_MS);
        console.log(`${tally.line()}; clear after ${Math.round(ms / 1_000)} s`);
        // Nothing is let go with the retained claim: its agent has as long to say that the sandbox is gone.
        // no DaemonSet of the chart's runs these agents
        const clean =
          "0 ok, but Berth is not installed in full: 1 pool, 1 claim, 1 reservation, 0 attachments";
        const check = async () => {
          said = await berthctlCheck(cluster.plane);
          assert.match(said, /^0 ok/);
          return said === clean ? true : undefined;
        };
        await eventually("the books are closed", check, GONE_MS).catch(() => assert.equal(said, clean));
      });
      const least = Object.entries(LEAST_PER_MINUTE).map(
        ([what, n]) => [what, Math.floor((n * SECONDS) / 60)] as const,
      );
      assert.deepEqual(tally.tooLittle(Object.fromEntries(least)), []);
    });
  });
}
