// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, on one host: served from blocks of pools, as in a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import { failureOf, networkOf, Runtime, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";

const MANIFESTS = [
  namespace("shop"),
  namespace("lab", { labels: { team: "lab" } }),
  namespace("bank", { labels: { team: "bank" } }),
  // without a size: one address at a time, and none before a pod needs one
  pool("bank", [{ cidr: "10.70.0.0/24", from: "10.70.0.50", to: "10.70.0.52" }, "fd00:70::/64"], {
    ...{ cooldown: "0s", namespaceSelector: { matchLabels: { team: "bank" } } },
  }),
  // without a size: one address at a time
  pool("any", [{ cidr: "10.30.0.0/24", from: "10.30.0.50", to: "10.30.0.70" }], {
    ...{ default: true, cooldown: "0s" },
  }),
  // without a size, for a network
  pool("wire", ["10.80.0.0/24"], { cooldown: "0s", networks: ["wire"] }),
  pool("lab", ["10.40.0.0/24"], {
    ...{ blockSize: { ipv4: 30 }, cooldown: "0s", namespaceSelector: { matchLabels: { team: "lab" } } },
  }),
  pool("last", ["10.60.0.0/29"], {
    ...{ blockSize: { ipv4: 32 }, cooldown: "0s" },
    ranges: [{ cidr: "10.60.0.0/29", from: "10.60.0.2", to: "10.60.0.5" }],
  }),
  pool("both", ["10.50.0.0/27", "fd00:50::/64"], { blockSize: { ipv4: 29, ipv6: 126 }, cooldown: "0s" }),
];

describe("pods that ask for nothing, on one host", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  /** A pod that nobody applied: the runtime names it, and no more. */
  const unseen = (name: string) => sandboxOf({ namespace: "lab", name, uid: `uid-of-${name}` });
  const silent = async (ns: string, name: string) => sandboxOf(await site.api.create(pod(ns, name)));

  it("E0117 are served from the pool that selects them, else from the default one, to its last address", async () => {
    const [address] = await site.runtime.attach(await silent("lab", "selected"));
    assert.match(address ?? "", /^10\.40\.0\.\d+\/24$/);
    const given = [];
    for (let n = 50; n <= 70; n++) given.push(...(await site.runtime.attach(await silent("shop", `p${n}`))));
    const all = Array.from({ length: 21 }, (_, i) => `10.30.0.${50 + i}/24`);
    assert.deepEqual(given.toSorted(), all);
    const { code, msg } = failureOf(await site.runtime.add(await silent("shop", "p71")));
    assert.equal(code, 11);
    const waits = await site.stack.berthctl("explain", "pod/shop/p71");
    assert.match(
      waits.stdout,
      /^pod\/shop\/p71 .*; it waits: pool "any" has no free IPv4 address: 21 in blocks of nodes, 0 in claims, 0 cooling\n/,
    );
    assert.match(
      msg,
      /the IPv4 blocks that this node has of pool "any", whose blocks are \/32, 10\.30\.0\.50\/32, .* 21 in use/,
    );
  });

  it("E0580 are served from a pool that selects them and says no size, and no address is the node's before one needs it", async () => {
    const own = async () =>
      (await site.stack.berthctl("get", "blocks")).stdout.match(/^(?:10\.70\.|fd00:70:)\S+/gm) ?? [];
    assert.deepEqual(await own(), []);
    await site.run(pod("bank", "pinned", { "berth.dev/ips": "10.70.0.51" }));
    const sandboxes = [await silent("bank", "one"), await silent("bank", "two")];
    const got = await Promise.all(sandboxes.map((sandbox) => site.runtime.attach(sandbox)));
    assert.deepEqual(got.map(([v4]) => v4).toSorted(), ["10.70.0.50/24", "10.70.0.52/24"]);
    assert.equal(new Set(got.map(([, v6]) => v6)).size, 2);
    assert.equal((await own()).length, 4);
    const { code, msg } = failureOf(await site.runtime.add(await silent("bank", "three")));
    assert.equal(code, 11);
    assert.match(msg, /pool "bank", whose blocks are \/32/);
  });

  it("E0586 are served from the pool of their network that says no size, and pods of other networks are not", async () => {
    const runtime = new Runtime({ socket: site.stack.socket, network: networkOf({}, { name: "wire" }) });
    const fixed = await site.run(pod("shop", "wired", { "berth.dev/ips": "10.80.0.1" })).catch(String);
    assert.match(String(fixed), /pool "wire" is for networks wire, and net is none of them/);
    const [address = ""] = await runtime.attach(await silent("shop", "on-wire"));
    assert.match(address, /^10\.80\.0\.\d+\/24$/);
    const blocks = (await site.stack.berthctl("get", "blocks")).stdout.match(/^10\.80\.\S+/gm);
    assert.deepEqual(blocks, [address.replace("/24", "/32")]);
    const [other = ""] = await site.runtime.attach(await silent("lab", "on-net"));
    assert.match(other, /^10\.40\./);
  });

  it("E0118 come at once and have an address each, of both families where the pool has blocks of both", async () => {
    const runtime = new Runtime({ socket: site.stack.socket, network: networkOf({ pools: ["both"] }) });
    const names = Array.from({ length: 20 }, (_, i) => `at-once-${i}`);
    const sandboxes = await Promise.all(names.map((name) => silent("shop", name)));
    const got = await Promise.all(sandboxes.map((sandbox) => runtime.attach(sandbox)));
    assert.equal(new Set(got.flat()).size, 40);
    assert.ok(got.every(([v4, v6]) => v4?.startsWith("10.50.0.") && v6?.startsWith("fd00:50::")));
  });

  it("E0119 keep their addresses from fixed pods, and fixed pods theirs from them", async () => {
    const pinned = await site.run(pod("lab", "pinned", { "berth.dev/ips": "10.40.0.200" }));
    const [address = ""] = await site.runtime.attach(await silent("lab", "beside"));
    const taken = address.split("/")[0] ?? "";
    const has = await site.stack.berthctl("explain", "pod/lab/beside");
    assert.match(
      has.stdout,
      new RegExp(
        `^pod/lab/beside asks for no fixed address, and has ${taken}, of block .*/30 .* of pool "lab" \\(which selects it\\)`,
      ),
    );
    const { namespace: ns, name } = { namespace: "lab", name: "unnumbered" };
    await silent(ns, name);
    await site.runtime.attach(sandboxOf({ namespace: ns, name, uid: "" }));
    const unnumbered = await site.stack.berthctl("explain", `pod/${ns}/${name}`);
    assert.match(unnumbered.stdout, /^pod\/lab\/unnumbered asks for no fixed address, and has 10\.40\./);
    await silent("lab", "not-started");
    const gets = await site.stack.berthctl("explain", "pod/lab/not-started");
    assert.match(
      gets.stdout,
      /^pod\/lab\/not-started .*; it gets any of pool "lab" \(which selects it\) from a block/,
    );
    const { message } = await site.api.refusal(pod("lab", "second", { "berth.dev/ips": taken }));
    assert.match(message, new RegExp(`${taken.replaceAll(".", "\\.")} .*is in block .* of node`));
    const given = new Set([address, ...pinned.addresses]);
    for (let n = 0; n < 12; n++)
      given.add(...((await site.runtime.attach(await silent("lab", `more-${n}`))) as [string]));
    assert.equal(given.size, 14);
  });

  it("E0575 are refused at once when a fixed claim has the last address, and nothing is left half done", async () => {
    const runtime = new Runtime({ socket: site.stack.socket, network: networkOf({ pools: ["last"] }) });
    await site.stack.berthctl("reserve", "shop/fixed", "--pool", "last");
    for (const name of ["one", "two", "three"]) await runtime.attach(await silent("shop", `last-${name}`));
    const { code, msg } = failureOf(await runtime.add(await silent("shop", "last-four")));
    assert.equal(code, 11);
    assert.match(
      msg,
      /this node has of pool "last", whose blocks are \/32, .* have no free address: 3 in use/,
    );
    assert.match(msg, /berthctl get attachments -A/);
    const { stdout } = await site.stack.berthctl("get", "pools");
    assert.match(stdout, /\nlast .* 4 of 4 .* full /);
    const more = await site.stack.berthctl("reserve", "shop/other", "--pool", "last");
    assert.match(more.stderr, /1 is held or cooling, 3 are in blocks of nodes/);
    assert.equal(await site.stack.findings(), "");
  });

  it("E0129 keep their addresses when the stack is killed, and no other gets them", async () => {
    const before = await silent("lab", "before-the-end");
    const addresses = await site.runtime.attach(before);
    await site.stack.kill9();
    await site.stack.start();
    assert.deepEqual(await site.runtime.attach(before), addresses);
    const others = await Promise.all([1, 2, 3, 4, 5].map((n) => site.runtime.attach(unseen(`after-${n}`))));
    assert.ok(!others.flat().includes(addresses[0] ?? ""));
    await eventually("its blocks are listed", async () =>
      (await site.stack.berthctl("get", "blocks")).stdout.includes("10.40.0.") ? true : undefined,
    );
  });
});
