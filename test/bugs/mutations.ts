// SPDX-License-Identifier: Apache-2.0
// What would have to be written for a bug of the catalogue (docs/reliability.md) to be in Berth, and which test notices.

import { CLUSTER_MUTATIONS } from "./cluster-mutations.ts";

export interface Mutation {
  /** `B1`, or `B11-sync` where one bug has several ways in. */
  readonly name: string;
  readonly file: string;
  /** Stands in the file exactly once, however its lines are broken. */
  readonly from: string;
  readonly to: string;
  /** In this folder. */
  readonly caughtBy: string;
  /** How the test's name begins. */
  readonly test: string;
  /** What is taken away is no guard: the test passes all the same. */
  readonly harmless?: boolean;
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: "B1",
    file: "allocator/gc/garbage-collector.ts",
    from: "const again = await observeOwner(seen.record, this.#inventory, this.#own);",
    to: "const again = facts;",
    caughtBy: "records.test.ts",
    test: "B1 ",
  },
  {
    name: "B2",
    file: "allocator/lifecycle/retention.ts",
    from: 'if (podName !== "") return await inventory.pod(namespace, podName);',
    to: 'if (podName !== "") { const there = await inventory.pod(namespace, podName); return there?.node === "" ? undefined : there; }',
    caughtBy: "records.test.ts",
    test: "B2 ",
  },
  {
    name: "B3-name",
    file: "ipam-plugin/agent/add/takeover.ts",
    from: 'if (next.pod.uid !== "" && other.pod?.uid === next.pod.uid)',
    to: "if (other.pod?.name === next.pod.name)",
    caughtBy: "node.test.ts",
    test: "B3 a pod of the same name",
  },
  {
    name: "B3-late",
    file: "ipam-plugin/agent/add/commit.ts",
    from: "superseded: true",
    to: "superseded: false",
    caughtBy: "node.test.ts",
    test: "B3 the late end",
  },
  {
    name: "B4",
    file: "ipam-plugin/agent/add/takeover.ts",
    from: 'return other.startNs > next.startNs ? "late" : "supersede";',
    to: 'return "wait";',
    caughtBy: "node.test.ts",
    test: "B4 ",
  },
  {
    name: "B5",
    file: "allocator/store/sqlite/store.ts",
    from: 'return row?.["uid"] === seen.uid && String(row["revision"]) === seen.revision ? row : undefined;',
    to: "return row;",
    caughtBy: "records.test.ts",
    test: "B5 ",
  },
  {
    name: "B6",
    file: "ipam-plugin/agent/journal/attachment-cache.ts",
    from: "const { attachments, positions } = contents;",
    to: "const { attachments, positions } = { ...contents, attachments: [], positions: [] };",
    caughtBy: "node.test.ts",
    test: "B6 ",
  },
  {
    name: "B7",
    file: "ipam-plugin/agent/agent.ts",
    from: "await replaySpool(folder, handle, log, services.bootId);",
    to: "",
    caughtBy: "node-away.test.ts",
    test: "B7 ",
  },
  {
    name: "B8",
    file: "allocator/lifecycle/acquire.ts",
    from: "export async function acquireCandidate(context: Context, wanted: Reservation): Promise<Take> {",
    to: `export async function acquireCandidate(context: Context, wanted: Reservation): Promise<Take> {
      const there = await context.store.get("reservation", wanted.address);
      if (there && !context.view.reservation(wanted.address)) await context.store.remove("reservation", there);`,
    caughtBy: "records.test.ts",
    test: "B8 ",
  },
  {
    name: "B9-limit",
    file: "ipam-plugin/agent/add/add.ts",
    from: "const LIMIT_MS = 25_000;",
    to: "const LIMIT_MS = 86_400_000;",
    caughtBy: "node.test.ts",
    test: "B9 an ADD that cannot go on",
  },
  {
    name: "B9-wait",
    file: "ipam-plugin/agent/commands/del.ts",
    from: "inFlight.abortBefore(attachmentKey(place), startNs);",
    to: "",
    caughtBy: "node.test.ts",
    test: "B9 a DEL does not wait",
  },
  {
    name: "B10",
    file: "allocator/base/keyed-mutex.ts",
    from: "const before = this.#tails.get(key) ?? Promise.resolve();",
    to: "const before = Promise.resolve();",
    caughtBy: "records.test.ts",
    test: "B15 ",
    harmless: true,
  },
  {
    name: "B11-boot",
    file: "ipam-plugin/agent/background/orphan-sweeper.ts",
    from: "attachments.attached().filter((attachment) => attachment.bootId !== bootId);",
    to: "attachments.attached().filter(() => false);",
    caughtBy: "node.test.ts",
    test: "B11 what another boot",
  },
  {
    name: "B11-sync",
    file: "allocator/store/sqlite/file.ts",
    from: 'connection.run("PRAGMA synchronous = FULL");',
    to: 'connection.run("PRAGMA synchronous = NORMAL");',
    caughtBy: "node.test.ts",
    test: "B11 every commit",
  },
  {
    name: "B11-empty",
    file: "allocator/store/sqlite/file.ts",
    from: "if (owner !== APPLICATION_ID) throw notOurs(path, sql);",
    to: `const pages = sql.get("PRAGMA page_count")?.["page_count"];
      if (owner !== APPLICATION_ID && pages !== 0) throw notOurs(path, sql);`,
    caughtBy: "node.test.ts",
    test: "B11 every commit",
  },
  {
    name: "B12",
    file: "allocator/gc/orphans.ts",
    from: "if (now - at >= ORPHAN_GRACE_MS) orphans.push(stored);",
    to: "",
    caughtBy: "records.test.ts",
    test: "B12 ",
  },
  {
    name: "B13",
    file: "ipam-plugin/agent/journal/attachment-cache.ts",
    from: `await this.#journal.write(change);
    for (const attachment of change.put ?? []) this.#publish(attachment);`,
    to: `for (const attachment of change.put ?? []) this.#publish(attachment);
    await this.#journal.write(change);`,
    caughtBy: "node.test.ts",
    test: "B13 ",
  },
  {
    name: "B14",
    file: "allocator/gc/garbage-collector.ts",
    from: "await this.#countRemoved(plan.orphans, (stored)",
    to: "await this.#countRemoved(plan.orphans.slice(0, 60), (stored)",
    caughtBy: "records.test.ts",
    test: "B14 ",
  },
  {
    name: "B15",
    file: "allocator/store/sqlite/store.ts",
    from: 'if (there !== undefined) return { kind: "exists", stored: storedOf(kind, there) };',
    to: "",
    caughtBy: "records.test.ts",
    test: "B15 ",
  },
  {
    name: "B16-pools",
    file: "allocator/pool/overlap.ts",
    from: "const shared = overlap(pool, other);",
    to: "const shared = undefined;",
    caughtBy: "records.test.ts",
    test: "B16 ",
  },
  {
    name: "B16-ranges",
    file: "ipam-plugin/agent/add/takeover.ts",
    from: "if (holder === undefined) continue;",
    to: "continue;",
    caughtBy: "node.test.ts",
    test: "B16 an address of a pool that a range",
  },
  {
    name: "B16-own-ranges",
    file: "ipam-plugin/agent/add/address-source.ts",
    from: "pickAddresses(withoutPools(space, parts),",
    to: "pickAddresses(space,",
    caughtBy: "node.test.ts",
    test: "B16 an address of a pool for",
  },
  {
    name: "B17-pool",
    file: "allocator/ip/free-address.ts",
    from: "yield* freeIn({ first: interval.first, last: n - 1n }, taken);",
    to: "",
    caughtBy: "records.test.ts",
    test: "B17 ",
  },
  {
    name: "B17-range",
    file: "ipam-plugin/agent/add/from-ranges.ts",
    from: "...part(home, { first: home.bounds.first, last: n }),",
    to: "...part(home, { first: home.bounds.first, last: n - 1n }),",
    caughtBy: "node.test.ts",
    test: "B17 ",
  },
  {
    name: "B18-lock",
    file: "allocator/base/keyed-mutex.ts",
    from: "const tail = mine.catch(() => undefined);",
    to: "const tail = mine.catch(() => new Promise(() => {}));",
    caughtBy: "records.test.ts",
    test: "B18 ",
  },
  {
    name: "B18-names",
    file: "ipam-plugin/cni/environment.ts",
    from: "return IDENTIFIER.test(text);",
    to: 'return text !== "";',
    caughtBy: "node.test.ts",
    test: "B18 an id",
  },
  ...CLUSTER_MUTATIONS,
];

export function mutationNamed(name: string): Mutation {
  const found = MUTATIONS.find((mutation) => mutation.name === name);
  if (found === undefined) throw new Error(`there is no mutation ${JSON.stringify(name)}`);
  return found;
}

/** The file that a mutation changes. */
export function sourceOf({ file }: Pick<Mutation, "file">): URL {
  return new URL(`../../${file}`, import.meta.url);
}
