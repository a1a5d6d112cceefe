// SPDX-License-Identifier: Apache-2.0
// What could be wrong in the store in etcd and in what hosts make of it: random lives of hosts must find each.

export interface HostsMutation {
  readonly name: string;
  readonly file: string;
  /** Stands in the file exactly once, however its lines are broken. */
  readonly from: string;
  readonly to: string;
}

export const HOSTS_MUTATIONS: readonly HostsMutation[] = [
  {
    name: "etcd does not compare whether an address is taken already",
    file: "allocator/store/etcd/messages.ts",
    from: "for (const { key, modRevision } of compared) {",
    to: "for (const { key, modRevision } of compared.filter((one) => one.modRevision !== 0)) {",
  },
  {
    name: "a host that was fenced gives addresses until it hears of it",
    file: "allocator/store/etcd/store.ts",
    from: "return gives && guard !== undefined ? guarded(client, guard) : client;",
    to: "return client;",
  },
  {
    name: "a write whose answer was lost is taken for done",
    file: "allocator/store/etcd/create-together.ts",
    from: 'if (answer.kind === "lost") { lost = answer.error; continue; }',
    to: 'if (answer.kind === "lost") { const made = creations.map((one) => ({ ...one, createRevision: 1, modRevision: 1 })); return { kind: "created", claim: readAs("claim", made[0] as KeyValue), reservations: made.slice(1).map((one) => readAs("reservation", one)) }; }',
  },
];
