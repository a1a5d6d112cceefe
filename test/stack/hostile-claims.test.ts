// SPDX-License-Identifier: Apache-2.0
// Claims that were written by hand, for an embedded stack that has no API server and no schema before it: whoever was handed a
// manifest applies it with berthctl, or sends its review to the socket. Another user of the host reaches neither (test/cli/other-user).
import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { berthctl } from "../cli/stack.ts";
import { namespace, pool } from "../support/manifests.ts";
import { claimObject, type Json, review } from "../support/objects.ts";
import { ChildStack } from "../support/stack.ts";

const own = ["10.20.0.7"];
const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));
const byName = (count: number, value: unknown) =>
  Object.fromEntries(many(count, (n) => [`net${n}`, value] as const));
const nested = (depth: number): unknown => (depth === 0 ? [] : [nested(depth - 1)]);
const asked = { addresses: own };

/** What each is refused for. */
const HOSTILE: readonly (readonly [what: string, spec: Json, why: RegExp])[] = [
  [
    "3,000 addresses",
    { request: { addresses: many(3_000, (n) => `10.20.${n >> 8}.${n & 255}`) } },
    /more than 16 addresses/,
  ],
  ["3,000 pools", { request: { pools: many(3_000, (n) => `p${n}`) } }, /more than 256 pools/],
  ["1,000 interfaces", { request: { ...asked, interfaces: byName(1_000, own) } }, /more than 8 interfaces/],
  [
    "an interface of 3,000 addresses",
    { request: { ...asked, interfaces: { net1: many(3_000, () => own[0]) } } },
    /more than 16 addresses/,
  ],
  [
    "pools of 1,000 interfaces",
    { request: { interfacePools: byName(1_000, ["db"]) } },
    /more than 8 interfaces/,
  ],
  ["1,000 fields", { request: asked, ...byName(1_000, 1) }, /unknown field "net0"/],
  [
    "a field with a name of 100,000 characters",
    { request: asked, ["x".repeat(100_000)]: 1 },
    /unknown field "x{100}\.\.\."/,
  ],
  [
    "an address of 100,000 characters",
    { request: { addresses: ["1".repeat(100_000)] } },
    /is not an IP address/,
  ],
  ["lists in lists", { request: { addresses: nested(10) } }, /is not an IP address/],
  [
    "an address on what stands for a MAC address",
    { request: { ...asked, interfaces: { "mac-eth0": own } } },
    /interface "mac-eth0" stands for a MAC address/,
  ],
  ["its own nonce", { request: asked, nonce: "mine" }, /spec\.nonce is written by Berth/],
  [
    "another's binding",
    { request: asked, binding: { node: "host-b", podName: "x" } },
    /spec\.binding is written by Berth/,
  ],
  ["addresses that it was given", { request: asked, addresses: own }, /spec\.addresses is written by Berth/],
  [
    "a slot",
    { request: asked, identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 } },
    /slot's claim cannot be made by hand/,
  ],
  [
    "a path as the claim that it takes over from",
    { request: asked, takesOver: "../../etc" },
    /is not the name of a claim/,
  ],
];

function messageIn(answer: string): string {
  const { response }: { response?: { status?: { message?: string } } } = JSON.parse(answer);
  return String(response?.status?.message);
}

describe("hostile claims by hand, on one host", () => {
  let stack: ChildStack;

  before(async () => {
    stack = await ChildStack.start({ manifests: [namespace("shop"), pool("db", ["10.20.0.0/24"])] });
  });
  after(() => stack?.remove());

  /** What the socket says of the review of an object. */
  function sent(object: Json, dryRun = false): Promise<string> {
    const body = JSON.stringify({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: { ...review(object), dryRun },
    });
    const socketPath = join(stack.dataDir, "run", "webhook.sock");
    return new Promise((resolve, reject) => {
      const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
      const call = request({ socketPath, path: "/validate/claims", method: "POST", headers });
      call.on("response", (response) => text(response).then((said) => resolve(messageIn(said)), reject));
      call.on("error", reject);
      call.end(body);
    });
  }

  it("are refused by the socket and by berthctl in the same words, and leave nothing", async () => {
    const before = await stack.dump();
    const objects = HOSTILE.map(([, spec], n) => claimObject(`hostile-${n}`, spec));
    for (const [n, [what, , why]] of HOSTILE.entries()) {
      for (const dryRun of [true, false]) assert.match(await sent(objects[n] ?? {}, dryRun), why, what);
    }
    const all = { apiVersion: "v1", kind: "List", items: objects };
    const { rc, stderr } = await berthctl(stack.dataDir, ["apply", "-f", "-"], JSON.stringify(all));
    assert.equal(rc, 1, stderr);
    const lines = stderr.trim().split("\n");
    for (const [n, [what, , why]] of HOSTILE.entries()) {
      const said = lines.find((line) => line.includes(`shop/hostile-${n}:`)) ?? "";
      assert.match(said, why, what);
      assert.ok(said.length < 1_000, `${what}: ${said.length} characters`);
    }
    assert.equal(await stack.dump(), before);
  });

  it("with a prototype, or names of properties, take nothing but what they say", async () => {
    const spec =
      '{"request":{"addresses":["10.20.0.8"],"__proto__":{"addresses":["10.20.0.9"]}},"constructor":{"prototype":{}}}';
    const raw = `{"apiVersion":"berth.dev/v1alpha1","kind":"IPClaim","metadata":{"namespace":"shop","name":"proto"},"spec":${spec}}`;
    const { rc, stderr } = await berthctl(stack.dataDir, ["apply", "-f", "-"], raw);
    assert.equal(rc, 1);
    assert.match(stderr, /unknown field "(__proto__|constructor)"|__proto__/);
    assert.equal(await stack.claim("shop/proto"), undefined);
  });

  it("cannot take what another claim has, nor come under the name of one that Berth made", async () => {
    const mine = await berthctl(
      stack.dataDir,
      ["apply", "-f", "-"],
      JSON.stringify(claimObject("mine", { request: asked })),
    );
    assert.equal(mine.rc, 0, mine.stderr);
    for (const object of [
      claimObject("theirs", { request: asked }),
      claimObject("theirs", { request: asked }, "bank"),
    ]) {
      const { rc, stderr } = await berthctl(stack.dataDir, ["apply", "-f", "-"], JSON.stringify(object));
      assert.equal(rc, 1);
      assert.match(stderr, /10\.20\.0\.7 in pool "db" is held by shop\/mine/);
    }
    assert.deepEqual((await stack.claim("shop/mine"))?.addresses, own);
    assert.equal(await stack.findings(), "");
  });
});
