// SPDX-License-Identifier: Apache-2.0
// Every kind of body, at every size up to the largest, sent to a webhook over TLS: what it cost is printed, and no body stays, or costs
// more memory than its size allows.
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, describe, it } from "node:test";
import { call } from "../../webhook/testing/api-server.ts";
import { SIZED_BODIES } from "../hostile/sized-bodies.ts";
import { pod, review } from "../support/objects.ts";
import { isFull } from "../support/runs.ts";
import { Companion, WEBHOOK_FLAGS } from "./companion.ts";
import type { Burden } from "./door.ts";

const MIB = 1024 * 1024;
const SIZES = isFull ? [1, 3, 8] : [1, 8];
/** Of what is sent, beside what the review around it takes. */
const LARGEST = 8;
/** Of the largest body, its texts and values, and of garbage that waits for its turn. */
const MOST_GROWTH = (4 * LARGEST + 96) * MIB;

/** The same review with that JSON in the place of a value that Berth does not know. */
function reviewWith(json: string): string {
  const object = pod("ours", { annotations: { "berth.dev/pools": "web" }, spec: { unknown: "HERE" } });
  const whole = JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: review(object, "CREATE", { dryRun: true }),
  });
  return whole.replace('"HERE"', () => json);
}

describe("a body of any kind", () => {
  let door: Companion;
  let at: { readonly port: number; readonly ca: string };

  before(async () => {
    door = new Companion("./door.ts", { flags: WEBHOOK_FLAGS });
    at = await door.next();
    for (let i = 0; i < 50; i++) assert.equal((await send(reviewWith("0"))).status, 200); // code is compiled
  });
  after(async () => {
    agent.destroy();
    await door?.end();
  });

  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (body: string) => call({ ...at, agent, path: "/mutate/pods?timeout=30s", body });

  it("is answered, and leaves no memory behind", async () => {
    const quiet = await door.ask<Burden>();
    for (const [kind, make] of Object.entries(SIZED_BODIES)) {
      for (const mib of SIZES) {
        // room for the review around it
        const body = reviewWith(make(mib * MIB - 4_096));
        await door.ask<Burden>();
        const { status, text } = await send(body);
        const first = await door.ask<Burden>();
        await send(body);
        const second = await door.ask<Burden>();
        // the machine has other things to do as well
        const burden = first.cpu < second.cpu ? first : second;
        const why = /"message":"([^"]*)"/.exec(text)?.[1] ?? "";
        console.log(told(`${kind}, ${mib} MiB`, mib, burden), status, why.slice(0, 80));
        assert.ok([200, 400].includes(status), text.slice(0, 200));
      }
    }
    const last = await door.ask<Burden>();
    const growth = last.peak - quiet.resident;
    console.log(`it grew by ${Math.round(growth / MIB)} MiB at the most`);
    assert.ok(growth < MOST_GROWTH, `it grew by ${Math.round(growth / MIB)} MiB`);
    assert.equal((await send(reviewWith("0"))).status, 200);
  });
});

function told(name: string, mib: number, { cpu, delayMost, resident, peak }: Burden): string {
  const whole = (bytes: number) => Math.round(bytes / MIB);
  return (
    `${name}: processor ${(cpu / mib).toFixed(1)} ms for a MiB, loop at the most ${delayMost.toFixed(1)} ms; ` +
    `${whole(resident)} MiB, at the most ${whole(peak)};`
  );
}
