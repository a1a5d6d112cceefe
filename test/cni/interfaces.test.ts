// SPDX-License-Identifier: Apache-2.0
// A pod with three real interfaces, each made by another main plugin and each with addresses of another pool (ADR 0027). Who calls the
// plugins one after the other stands in for a meta plugin as Multus: one ADD for each interface, in one sandbox.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { type NetworkedStack, networkedSuite } from "../support/networked-stack.ts";
import type { Runtime } from "../support/runtime.ts";

const MANIFESTS = [
  namespace("shop"),
  pool("db", ["10.20.0.0/24", "fd00:20::/64"], { cooldown: "0s" }),
  pool("lan", ["10.30.0.0/24"], { cooldown: "0s" }),
  pool("line", [{ cidr: "10.40.0.0/24", gateway: "10.40.0.254" }], { cooldown: "0s" }),
];

describe("a pod with three interfaces", await skipWithoutNetwork(), () => {
  let site: NetworkedStack;

  networkedSuite(MANIFESTS, (started) => {
    site = started;
  });

  const named = (n: number) => [`10.20.0.${n}`, `fd00:20::${n}`, `10.30.0.${n}`, `10.40.0.${n}`];

  /** Its interfaces, each with the plugin that makes it. */
  async function started(n: number) {
    const [v4, v6, lan, line] = named(n);
    const ips = `${v4}/${v6},${lan}@net1,${line}@net2`;
    const kept = await site.api.create(pod("shop", `three-${n}`, { "berth.dev/ips": ips }));
    const { sandbox, netns } = await site.sandboxFor(kept);
    const plugins: readonly (readonly [string, Runtime])[] = [
      ["eth0", site.runtime("bridge")],
      ["net1", site.runtime("macvlan")],
      ["net2", site.runtime("ptp")],
    ];
    for (const [name, runtime] of plugins) await runtime.attach({ ...sandbox, interface: name });
    const end = async (name: string) => {
      const [, runtime] = plugins.find(([one]) => one === name) ?? assert.fail();
      await runtime.detach({ ...sandbox, interface: name });
    };
    return { kept, netns, end };
  }

  it("E0611 has on each what it named for it, and answers there, until the last is gone", async () => {
    const [a, b] = [await started(11), await started(12)];
    assert.deepEqual((await site.shown(b.netns)).toSorted(), [
      "eth0 10.20.0.12/24",
      "eth0 fd00:20::12/64",
      "net1 10.30.0.12/24",
      "net2 10.40.0.12/24",
    ]);
    for (const to of named(12)) assert.ok(await site.host.pings(a.netns, to), `no answer from ${to}`);
    await a.end("net1");
    await a.end("eth0");
    assert.deepEqual(await site.host.interfacesOf(a.netns), ["net2"]);
    assert.ok(await site.host.pings(b.netns, "10.40.0.11"));
    assert.equal((await site.stack.claim("shop/three-11"))?.status.attachment?.detached, false);
    await a.end("net2");
    await eventually("the claim is told", async () =>
      (await site.stack.claim("shop/three-11"))?.status.attachment?.detached === true ? true : undefined,
    );
    for (const name of ["net2", "net1", "eth0"]) await b.end(name);
  });
});
