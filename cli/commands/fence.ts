// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import type { HostRegistry, StoredHost } from "../../allocator/store/etcd/hosts.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { reportError } from "../apply/report.ts";
import { contextOn } from "../backend/backend.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { type EtcdBackend, withEtcd } from "../backend/etcd-backend.ts";
import type { Command, CommandContext } from "../terminal/command.ts";
import { ETCD_FLAGS, noEtcd } from "../terminal/flags.ts";
import { printable, timeOf } from "../terminal/output.ts";
import { boundTo, fencedClaims, type Marked, markGone, staysForItsName } from "./fenced-claims.ts";
import { tellOfWatch, WATCHED_MS } from "./watched-host.ts";

/** What of an etcd a fence needs. */
interface Fenced extends Pick<EtcdBackend, "store" | "claims"> {
  readonly registry: Pick<HostRegistry, "get" | "list" | "put">;
}

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
  inCluster:
    "a node that is off is fenced with: kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute (docs/operations.md, A node is lost)",
  examples: [
    "berthctl fence host-c --etcd http://10.0.0.1:2379",
    "berthctl fence host-c --etcd http://10.0.0.1:2379 --yes",
  ],
  async run(args, context) {
    const [name = ""] = args.expect("HOST");
    if (context.etcd === undefined) throw noEtcd();
    const confirmed = args.has("yes");
    const refusal = await withEtcd(context.io, context.etcd, (etcd) =>
      fenceHost(etcd, name, { context, confirmed }),
    );
    if (refusal === undefined) return 0;
    reportError(context.io, refusal.message);
    return 1;
  },
};

/** Why it is not done; undefined: it is, or what would be done is said. */
export async function fenceHost(
  etcd: Fenced,
  name: string,
  { context, confirmed }: { context: CommandContext; confirmed: boolean },
): Promise<Refusal | undefined> {
  const { stdout } = context.io;
  const host = await etcd.registry.get(name);
  if (host === undefined) return await noHost(etcd, name);
  sayWhatItHas(host, await boundTo(etcd, name), context.io);
  if (!confirmed) {
    stdout.write(`with --yes they are free for others; no container of ${printable(name)} may run then\n`);
    return undefined;
  }
  const marked = await markWatched(etcd, host, context);
  if (isRefusal(marked)) return marked;
  const { claims: own, isServing } = await fencedClaims(etcd, marked);
  const released = counted(await letGo(etcd, own, context), "claim is", "claims are");
  stdout.write(`host ${printable(name)} is fenced, ${released} released\n`);
  if (isServing) {
    const words = `a host is called ${name} again and serves; what else the fenced one had it lets go itself`;
    stdout.write(`${printable(words)}\n`);
  }
  return undefined;
}

/** Also of what is not released: a container of the fenced host that runs on has the address of another host's, too. */
function sayWhatItHas(
  { name, record }: StoredHost,
  claims: readonly Stored<"claim">[],
  { stdout }: CommandContext["io"],
): void {
  const addresses = claims.flatMap((claim) => claim.record.addresses);
  const last = `${name} was last heard of at ${timeOf(record.seen)}, by its own clock`;
  stdout.write(
    `${printable(last)}; its containers have ${counted(addresses.length, "address", "addresses")}\n`,
  );
  for (const claim of claims.filter(staysForItsName)) {
    const words = `${claim.record.addresses.join(", ")} of ${claim.key}, which was made by hand, is not released: the next container of that name has it, on any host`;
    stdout.write(`  ${printable(words)}\n`);
  }
}

async function noHost({ registry }: Fenced, name: string): Promise<Refusal> {
  const names = (await registry.list()).map((host) => host.name);
  const there = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  return refuse("OBJECT_INVALID", `no host is called ${name} in etcd; ${there}`);
}

/** Only a record that nobody writes any more is of a host that is gone. */
async function markWatched(
  etcd: Fenced,
  host: StoredHost,
  { io, user }: CommandContext,
): Promise<Marked | Refusal> {
  const { name, record } = host;
  if (record.fenced === undefined) {
    tellOfWatch(io, name);
    await io.clock.sleep(WATCHED_MS);
  }
  const marked = await markGone(etcd, host, { at: Math.floor(io.clock.now()), by: user });
  if (marked !== "alive") return marked;
  const words = `host ${name} is alive: it has written to etcd while it was watched; stop it first`;
  return refuse("CLAIM_BUSY", words);
}

/** Exactly as they were listed: what was changed since is somebody's. How many were let go. */
async function letGo(
  { store }: Fenced,
  claims: readonly Stored<"claim">[],
  { io }: CommandContext,
): Promise<number> {
  const view = await loadCache(store);
  const context = contextOn(store, view, io);
  let released = 0;
  for (const seen of claims) {
    if ((await release(context, seen)) === "changed" && !(await isGivenBack(store, seen))) continue;
    released++;
    io.stdout.write(`  ${seen.record.addresses.join(", ")} of ${printable(seen.key)}\n`);
  }
  return released;
}

/** By a host that has seen the mark, or by another person. */
async function isGivenBack(store: Store, { key, record }: Stored<"claim">): Promise<boolean> {
  const now = (await store.get("claim", key))?.record;
  return now?.nonce !== record.nonce || now.releasing === true;
}
