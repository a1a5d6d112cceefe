// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { Client } from "../../kube/api/client.ts";
import { EVENTS, type KubeItem } from "../../kube/api/resource.ts";
import { type EventInput, EventRecorder } from "../../kube/controller/event-recorder.ts";
import { kubeEventSink } from "../../kube/controller/event-sink.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";

const TAKEN: EventInput = {
  regarding: { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", name: "db", uid: "u-1" },
  type: "Warning",
  reason: "PoolExhausted",
  action: "Reserving",
  note: 'every address of pool "db" is taken; 地址',
};

interface ApiEvent extends KubeItem {
  readonly series?: { readonly count: number };
  readonly note: string;
  readonly regarding: { readonly name: string };
  readonly reportingController: string;
}

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("events on a real API server", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await openControlPlane();
    });
    after(() => plane?.close());

    it("are one with a count for what happens again, of any length, for objects with a namespace and without", async () => {
      const connection = plane.connect();
      const sink = kubeEventSink(connection, { controller: "berth.dev/webhook", instance: "webhook-0" });
      const clock = createClock();
      const recorder = new EventRecorder({ sink, clock, random: createRandom(), log: noopLogger });
      const stop = new AbortController();
      const running = recorder.run(stop.signal);
      const client = new Client(connection, EVENTS);
      const ours = async () => {
        const items = await listItems(client);
        return (items as ApiEvent[]).filter((event) => event.reportingController === "berth.dev/webhook");
      };
      recorder.record(TAKEN);
      await eventually("the event", async () => ((await ours()).length === 1 ? true : undefined));
      recorder.record(TAKEN);
      recorder.record(TAKEN);
      const regarding = {
        apiVersion: "berth.dev/v1alpha1",
        kind: "IPClaim",
        namespace: "default",
        name: "mysql-0",
      };
      recorder.record({ ...TAKEN, type: "Normal", regarding, note: "ä".repeat(2_000) });
      await eventually("the other event", async () => ((await ours()).length === 2 ? true : undefined));
      stop.abort();
      await running;
      const events = await ours();
      const about = (name: string) => events.find((event) => event.regarding.name === name);
      assert.equal(about("db")?.series?.count, 3);
      assert.equal(about("db")?.note, TAKEN.note);
      assert.equal(about("mysql-0")?.series, undefined);
      const listed = await plane.kubectl(["get", "events", "-n", "default", "-o", "wide"]);
      assert.match(listed.stdout, /PoolExhausted +ippool\/db .*every address of pool "db" is taken; 地址/);
    });
  });
}
