// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import type { StoredHost } from "../../allocator/store/etcd/hosts.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { reportError } from "../apply/report.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { type EtcdBackend, withEtcd } from "../backend/etcd-backend.ts";
import type { Command, CommandContext } from "../terminal/command.ts";
import { ETCD_FLAGS, usageError } from "../terminal/flags.ts";
import { printable, timeOf } from "../terminal/output.ts";

/** A host that is alive writes every 10 s (presence.ts), and is given two chances. */
const WATCHED_MS = 25_000;

/** `berthctl fence` */
export const fence: Command = {
  name: "fence",
  summary: "say that a host which shares an etcd is gone for good, and let its containers' addresses go",
  usage: ["fence HOST --etcd URL[,URL] [--yes]"],
  flags: {
    yes: {
      type: "boolean",
      about: "do it; without it, say what would be done. The containers of HOST must not run any more",
    },
    ...ETCD_FLAGS,
  },
  inCluster: "taint the node out-of-service, or annotate it (docs/cluster.md)",
  examples: [
    "berthctl fence host-c --etcd http://10.0.0.1:2379",
    "berthctl fence host-c --etcd http://10.0.0.1:2379 --yes",
  ],
  async run(args, context) {
    const [name = ""] = args.expect("HOST");
    if (context.etcd === undefined)
      throw usageError("there is no URL of etcd; give it with --etcd, or set BERTH_ETCD");
    const confirmed = args.has("yes");
    const refusal = await withEtcd(context.io, context.etcd, (etcd) =>
      fenceHost(etcd, name, { context, confirmed }),
    );
    if (refusal === undefined) return 0;
    reportError(context.io, refusal.message);
    return 1;
  },
};

async function fenceHost(
  etcd: EtcdBackend,
  name: string,
  { context, confirmed }: { context: CommandContext; confirmed: boolean },
): Promise<Refusal | undefined> {
  const { stdout } = context.io;
  const host = await etcd.registry.get(name);
  if (host === undefined) return await noHost(etcd, name);
  const claims = await claimsOf(etcd, name);
  const addresses = claims.flatMap(({ record }) => record.addresses);
  const last = `${name} was last heard of at ${timeOf(host.record.seen)}, by its own clock`;
  stdout.write(
    `${printable(last)}; its containers have ${counted(addresses.length, "address", "addresses")}\n`,
  );
  if (!confirmed) {
    stdout.write(`with --yes they are free for others; no container of ${printable(name)} may run then\n`);
    return undefined;
  }
  const alive = host.record.fenced === undefined ? await markGone(etcd, host, context) : undefined;
  if (alive !== undefined) return alive;
  // again: it may have given some while it was silent, and from here on gives none
  const left = await claimsOf(etcd, name);
  await letGo(etcd, left, context);
  const released = counted(left.length, "claim is", "claims are");
  stdout.write(`host ${printable(name)} is fenced, ${released} released\n`);
  return undefined;
}

async function noHost({ registry }: EtcdBackend, name: string): Promise<Refusal> {
  const names = (await registry.list()).map((host) => host.name);
  const there = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  return refuse("OBJECT_INVALID", `no host is called ${name} in etcd; ${there}`);
}

/** Of claims that a person made the next container may have them, wherever it is. */
async function claimsOf(etcd: EtcdBackend, name: string): Promise<readonly Stored<"claim">[]> {
  const all = await etcd.claims();
  return all.filter(({ record }) => record.binding?.node === name && record.handMade !== true);
}

/** Only a record that nobody writes any more is of a host that is gone. */
async function markGone(
  { registry }: EtcdBackend,
  host: StoredHost,
  { io, user }: CommandContext,
): Promise<Refusal | undefined> {
  const { name, record, revision } = host;
  io.stderr.write(`looking for ${WATCHED_MS / 1000} s whether ${printable(name)} is alive\n`);
  await io.clock.sleep(WATCHED_MS);
  const fenced = { ...record, fenced: { at: Math.floor(io.clock.now()), by: user } };
  if ((await registry.put(name, fenced, revision)) !== "changed") return undefined;
  const words = `host ${name} is alive: it has written to etcd while it was watched; stop it first`;
  return refuse("CLAIM_BUSY", words);
}

async function letGo(
  { store }: EtcdBackend,
  claims: readonly Stored<"claim">[],
  { io: { clock, random, stdout } }: CommandContext,
): Promise<void> {
  const view = await loadCache(store);
  const context = { store, view, clock, random, log: noopLogger, serial: new KeyedMutex() };
  for (const { key, record } of claims) {
    const seen = await store.get("claim", key);
    if (seen?.record.nonce === record.nonce) await release(context, seen);
    stdout.write(`  ${record.addresses.join(", ")} of ${printable(key)}\n`);
  }
}
