// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  deploymentPod,
  type Json,
  pod,
  statefulPod,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const POOLS = [DB_POOL, poolRecord("web", "10.30.0.0/24")];

/** As the API server sends it to the second webhook: mutated by ours, and then by another one. */
async function final(world: World, object: Json, changed: Json, name?: string): Promise<Json> {
  const mutated = applied(object, await send(world, "/mutate/pods", object));
  const metadata = mutated["metadata"] as Json;
  const annotations = { ...annotationsOf(mutated), ...changed };
  return {
    ...mutated,
    metadata: { ...metadata, ...(name === undefined ? {} : { name }), uid: "u", annotations },
  };
}

async function said(world: World, object: Json, changed: Json, name?: string): Promise<string> {
  return deniedAs(await send(world, "/validate/pods", await final(world, object, changed, name)));
}

describe("a pod whose request another webhook changes after ours", () => {
  it("is refused in words, whatever it asks for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const licence = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    assert.equal(
      await said(world, licence, { "berth.dev/ips": "10.20.0.80" }),
      "CLAIM_CHANGED: pod shop/licence asks for 10.20.0.80 and was given 10.20.0.70 at its admission: its request was changed after berth was asked; write the request into the pod itself",
    );
    const second = pod("second", { annotations: { "berth.dev/pools": "web" } });
    assert.match(
      await said(world, second, { "berth.dev/pools": "db" }),
      /^ADDRESS_OUTSIDE: address 10\.30\.0/,
    );
    const third = pod("third", { annotations: { "berth.dev/pools": "web" } });
    assert.match(
      await said(world, third, { "berth.dev/families": "IPv6" }),
      /^REQUEST_INVALID: .* asks for IPv6/,
    );
  });

  it("is refused when what it was given is changed", async () => {
    await using world = await openWorld({ pools: POOLS });
    const licence = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    assert.match(
      await said(world, licence, { "berth.dev/claim": "other" }),
      /^CLAIM_CHANGED: pod shop\/licence was given claim other at its admission, which is not that of the pod/,
    );
    assert.match(await said(world, licence, { "berth.dev/addresses": "10.20.0.90" }), /^CLAIM_CHANGED: /);
  });

  it("passes when it is as it was: an ordinal, a slot, one from generateName, one that asks for nothing", async () => {
    await using world = await openWorld({ pools: POOLS });
    const list = { "berth.dev/ips": "10.20.0.70;10.20.0.71" };
    assert.equal(await said(world, statefulPod("mysql", 1, { annotations: list }), {}), "");
    const slots = { "berth.dev/ips": "10.30.0.70;10.30.0.71" };
    assert.equal(await said(world, deploymentPod("web", { annotations: slots }), {}, "web-x"), "");
    const generated = pod("", { generateName: "etl-", annotations: { "berth.dev/pools": "web" } });
    assert.equal(await said(world, generated, {}, "etl-abcde"), "");
    assert.equal(await said(world, pod("plain"), {}), "");
  });
});
