// SPDX-License-Identifier: Apache-2.0
// node test/etcd/adds.ts: addresses for new containers on two hosts that share an etcd of three members, by Berth's port to
// claims and by a model of cni-ipam-etcd, in one run. Neither has a CNI plugin or an agent's journal before it.
import assert from "node:assert/strict";
import { addRequest, claimAddress } from "./containers.ts";
import { type Host, openHost } from "./host.ts";
import { callsOf, type Members, startMembers } from "./members.ts";
import { addAsModel } from "./model-cni-ipam-etcd.ts";

const PARALLEL = [1, 16, 64];
/** For each row; the model, which waits, comes to fewer. */
const ROW_MS = 40_000;
const MOST = 1_000;

async function row(
  members: Members,
  { name, parallel }: { readonly name: string; readonly parallel: number },
  add: (i: number) => Promise<void>,
): Promise<void> {
  const took: number[] = [];
  let [next, failed] = [0, 0];
  const calls = await callsOf(members);
  const began = performance.now();
  const worker = async () => {
    while (next < MOST && performance.now() - began < ROW_MS) {
      const i = next++;
      const start = performance.now();
      try {
        await add(i);
        took.push(performance.now() - start);
      } catch {
        failed++;
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  const perSecond = (took.length / (performance.now() - began)) * 1000;
  const callsEach = ((await callsOf(members)) - calls) / took.length;
  took.sort((one, other) => one - other);
  const at = (share: number) => (took[Math.floor((took.length - 1) * share)] ?? Number.NaN).toFixed(1);
  const cells = [
    name,
    parallel,
    took.length,
    failed,
    perSecond.toFixed(1),
    at(0.5),
    at(0.99),
    callsEach.toFixed(1),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}

async function main(): Promise<void> {
  const members = await startMembers();
  const hosts: Host[] = [];
  const before: Host[] = [];
  try {
    for (const node of ["host-a", "host-b"]) hosts.push(await openHost(node, members.urls));
    for (const node of ["host-c", "host-d"]) before.push(await openHost(node, members.urls, true));
    const [first] = hosts;
    assert.ok(first);
    // as an agent makes it of a network's range
    const spec = { ranges: [{ cidr: "10.10.0.0/16" }], cooldown: "0s", limits: { perNamespace: 65_536 } };
    await first.context.store.create("pool", { name: "lan", spec });
    while ([...hosts, ...before].some(({ context }) => context.view.pool("lan") === undefined)) {
      await first.context.clock.sleep(20);
    }
    console.log(
      "| who | in parallel | ADDs | failed | ADDs per s | p50 ms | p99 ms | calls to etcd for an ADD |",
    );
    console.log("|---|---|---|---|---|---|---|---|");
    for (const [name, of] of [
      ["Berth", hosts],
      ["Berth, record by record", before],
    ] as const)
      for (const parallel of PARALLEL) {
        await row(members, { name, parallel }, async (i) => {
          const host = of[i % of.length] ?? first;
          assert.match(await claimAddress(host, addRequest(`${name}-${parallel}-${i}`)), /^10\.10\./);
        });
      }
    for (const parallel of PARALLEL) {
      await row(members, { name: "model of cni-ipam-etcd", parallel }, (i) =>
        addAsModel(members.urls[i % members.urls.length] ?? "", `box-${parallel}-${i}`),
      );
    }
  } finally {
    for (const host of [...hosts, ...before]) await host.close();
    await members.close();
  }
}

await main();
