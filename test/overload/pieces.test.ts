// SPDX-License-Identifier: Apache-2.0
// Bodies in very many small pieces, each of which costs as much as some KiB do, while an API server's reviews go on.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openLoop } from "../bench/load.ts";
import { median, quantile } from "../bench/statistics.ts";
import { preferNot } from "../support/processor.ts";
import { isFull } from "../support/runs.ts";
import { ApiServerLines } from "./api-server-lines.ts";
import { Companion } from "./companion.ts";
import type { Burden } from "./door.ts";
import type { PiecesDeeds, PiecesOrder } from "./pieces.ts";

const MS = isFull ? 10_000 : 3_000;
const STRANGERS = 32;
const LINES = 8;
const PER_SECOND = 50;
const MIB = 1024 * 1024;
/** No body is kept, and there is a connection's memory for each stranger. */
const MOST_GROWTH = 64 * MIB;

for (const { name, args, told } of [
  { name: "where the API server shows a certificate", args: ["proven"], told: ["403"] },
  { name: "where anybody may send reviews", args: [], told: ["411", "400"] },
])
  describe(`bodies in chunks of one byte, ${name}`, () => {
    let api: ApiServerLines;
    before(async () => {
      api = await ApiServerLines.open(LINES, args);
    });
    after(async () => await api?.close());

    async function measure(when: string): Promise<Burden> {
      await api.door.ask<Burden>();
      const ask = async (line: number) => void (await api.ask(line));
      const times = await openLoop(ask, LINES, { perSecond: PER_SECOND, ms: MS });
      const burden = await api.door.ask<Burden>();
      const { delayP99, delayMost, cpu, resident, peak } = burden;
      const ms = (value: number) => `${value.toFixed(1)} ms`;
      const mib = (value: number) => `${Math.round(value / MIB)} MiB`;
      console.log(
        `${when}: reviews ${ms(median(times))}, p99 ${ms(quantile(times, 0.99))}; loop p99 ${ms(delayP99)}, ` +
          `most ${ms(delayMost)}; processor ${ms(cpu)}; ${mib(resident)}, at the most ${mib(peak)}`,
      );
      return burden;
    }

    it("are ended before they are there, and the API server's reviews go on", async () => {
      const quiet = await measure("quiet");
      const strangers = new Companion("./pieces.ts");
      try {
        preferNot(strangers.pid);
        await strangers.ask<string>(
          JSON.stringify({ port: api.port, count: STRANGERS } satisfies PiecesOrder),
        );
        const { peak } = await measure(`${STRANGERS} strangers`);
        const { answers, cutOff, taken } = await strangers.ask<PiecesDeeds>();
        console.log(JSON.stringify({ answers, cutOff, taken }));
        assert.equal(taken, 0, "no body was read to its end");
        assert.ok(cutOff >= STRANGERS, `${cutOff} were ended`);
        // a connection that is ended with bytes unread may take its answer with it
        assert.deepEqual(
          Object.keys(answers).filter((one) => !told.includes(one)),
          [],
        );
        const growth = peak - quiet.resident;
        assert.ok(growth < MOST_GROWTH, `it grew by ${Math.round(growth / MIB)} MiB`);
      } finally {
        await strangers.end();
      }
    });
  });
