// SPDX-License-Identifier: Apache-2.0
// A process of workers. It is told what to do by messages, and ends with whoever started it.
import { KubeConfig } from "@kubernetes/client-node";
import { connect } from "../../kube/api/connection.ts";
import { createClock } from "../../system/clock.ts";
import { BareCreates, PART } from "./bare.ts";
import { BerthAllocator } from "./berth.ts";
import { CONTENDERS, type Contender, type ContenderName } from "./contender.ts";
import { LeaseAround, OneObject } from "./models.ts";
import type { Order, Reply } from "./orders.ts";
import { type Shift, workShift } from "./shift.ts";

type Place = Readonly<Record<ContenderName, Contender>> & { readonly berth: BerthAllocator };

const clock = createClock();
const copies: Place[] = [];
/** Behind the addresses that are taken from the beginning. */
const PARTS_FROM = 100_000;
const MOST_REPLICAS = 8;

process.on("disconnect", () => process.exit(0));
process.on("message", (order: Order) => {
  void obey(order).then(
    (shift) => answer({ done: true, cpuMs: cpuMs(), ...(shift === undefined ? {} : { shift }) }),
    (error: unknown) =>
      answer({ done: false, error: error instanceof Error ? (error.stack ?? "") : String(error) }),
  );
});

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function answer(reply: Reply): void {
  process.send?.(reply);
}

async function obey(order: Order): Promise<Shift | undefined> {
  switch (order.verb) {
    case "open":
      open(order);
      return undefined;
    case "work":
      return await work(order);
    case "watch":
    case "rest":
      await Promise.all(copies.map(({ berth }) => berth[order.verb]()));
      return undefined;
    default:
      await Promise.all(copies.flatMap((admission) => CONTENDERS.map((name) => admission[name].clear())));
      return undefined;
  }
}

function open({ access, replicas, number }: Order & { verb: "open" }): void {
  for (let i = 0; i < replicas; i++) {
    const config = new KubeConfig();
    config.loadFromString(access);
    const connection = connect(config, { clock, userAgent: "berth-bench" });
    const from = PARTS_FROM + (number * MOST_REPLICAS + i) * PART;
    copies.push({
      bare: new BareCreates(connection, { from, watched: false }),
      watched: new BareCreates(connection, { from, watched: true }),
      berth: new BerthAllocator(connection),
      "one object": new OneObject(connection),
      lease: new LeaseAround(connection, 500),
      "quick lease": new LeaseAround(connection, 50),
    });
  }
}

async function work({ contender, workers, hours, tag }: Order & { verb: "work" }): Promise<Shift> {
  return await workShift(
    async (worker, n, signal) => {
      const admission = copies[worker % copies.length];
      return await admission?.[contender].take(`${tag}-${worker}-${n}`, signal);
    },
    workers,
    hours,
    clock,
  );
}
