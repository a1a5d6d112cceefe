// SPDX-License-Identifier: Apache-2.0
// Every kind of body, at every size up to the largest, sent to a webhook over TLS: what it cost is printed, and no body stays, or costs
// more memory than its size allows.
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { ANNOTATION_FORMATS } from "../../allocator/manifest/annotations.ts";
import { NETWORK_ANNOTATIONS } from "../../allocator/manifest/network-attachments.ts";
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
  return reviewOf({ spec: { unknown: "HERE" } }).replace('"HERE"', () => json);
}

function reviewOf({
  annotations = {},
  spec = {},
}: {
  annotations?: Labels;
  spec?: Readonly<Record<string, unknown>>;
}): string {
  const object = pod("ours", { annotations: { "berth.dev/pools": "web", ...annotations }, spec });
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: review(object, "CREATE", { dryRun: true }),
  });
}

const listOf = (piece: string, open = "", close = "a") => {
  return (size: number) => `${open}${piece.repeat(Math.floor(size / piece.length))}${close}`;
};
/** Values of annotations that would cost much to read, were they of any length. */
const ANNOTATIONS: Readonly<Record<string, (size: number) => string>> = {
  "names apart by commas": listOf("a,"),
  commas: listOf(","),
  "names with each sign": listOf("a/a@a,"),
  slashes: listOf("/"),
  "a list of objects": listOf('{"name":"a"},', "[", "{}]"),
  "a list of lists": listOf("[],", "[", "1]"),
  "addresses apart by semicolons": listOf("10.30.0.1;"),
};
const KEYS: readonly string[] = [...ANNOTATION_FORMATS.map(({ key }) => key), ...NETWORK_ANNOTATIONS];

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
        console.log(reported(`${kind}, ${mib} MiB`, mib, burden), status, why.slice(0, 80));
        assert.ok([200, 400].includes(status), text.slice(0, 200));
      }
    }
    const last = await door.ask<Burden>();
    const growth = last.peak - quiet.resident;
    console.log(`it grew by ${Math.round(growth / MIB)} MiB at the most`);
    assert.ok(growth < MOST_GROWTH, `it grew by ${Math.round(growth / MIB)} MiB`);
    assert.equal((await send(reviewWith("0"))).status, 200);
  });

  it("is refused unread for an annotation longer than any that is kept", async () => {
    for (const key of KEYS) {
      for (const [kind, make] of Object.entries(ANNOTATIONS)) {
        const body = reviewOf({ annotations: { [key]: make(2 * MIB) } });
        await door.ask<Burden>();
        const { text } = await send(body);
        console.log(reported(`${key}, ${kind}`, body.length / MIB, await door.ask<Burden>()));
        assert.match(
          text,
          /"message":"annotation [^"]*: it is longer than [0-9]+ characters"/,
          `${key}: ${kind}`,
        );
      }
    }
  });
});

function reported(name: string, mib: number, { cpu, delayMost, resident, peak }: Burden): string {
  const whole = (bytes: number) => Math.round(bytes / MIB);
  return (
    `${name}: processor ${(cpu / mib).toFixed(1)} ms for a MiB, loop at the most ${delayMost.toFixed(1)} ms; ` +
    `${whole(resident)} MiB, at the most ${whole(peak)};`
  );
}
