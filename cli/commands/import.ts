// SPDX-License-Identifier: Apache-2.0
import { counted } from "../../allocator/base/counted.ts";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { ClaimKey } from "../../allocator/model/claim.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { apiVersionOf } from "../../kube/api/resource.ts";
import { IP_CLAIM, IP_POOL, type KindFacts } from "../apply/kinds.ts";
import { type Subject, subjectOf } from "../apply/object-ref.ts";
import { reportError } from "../apply/report.ts";
import { deleteObject, submit } from "../apply/submit.ts";
import { withEtcd } from "../backend/etcd-backend.ts";
import { FormerNetwork } from "../import/former-network.ts";
import { importNetwork, readNetwork, sizeOf, usedOf } from "../import/import-network.ts";
import type { Command, CommandContext, ExitCode } from "../terminal/command.ts";
import { DRY_RUN, ETCD_FLAGS, noEtcd } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import type { EtcdTarget } from "../terminal/target.ts";

/** `berthctl import` */
export const importCommand: Command = {
  name: "import",
  summary: "take over a network of cni-ipam-etcd: its ranges as a pool, and the addresses of its containers",
  usage: ["import NETWORK --etcd URL[,URL] [--dry-run]"],
  flags: { "dry-run": DRY_RUN, ...ETCD_FLAGS },
  inCluster: "networks of a cluster's agents are imported with berthctl and the etcd's URL",
  examples: [
    "berthctl import lan --etcd http://10.0.0.1:2379 --dry-run",
    "berthctl import lan --etcd http://10.0.0.1:2379",
  ],
  async run(args, context) {
    const [name = ""] = args.expect("NETWORK");
    const { etcd } = context;
    if (etcd === undefined) throw noEtcd();
    const refusal = args.has("dry-run")
      ? await dryRunImport(context, etcd, name)
      : await take(context, etcd, name);
    if (refusal === undefined) return 0;
    reportError(context.io, refusal.message);
    return 1 satisfies ExitCode;
  },
};

/** What there is to import. */
async function dryRunImport(
  { io }: CommandContext,
  etcd: EtcdTarget,
  name: string,
): Promise<Refusal | undefined> {
  return await withEtcd(io, etcd, async ({ keys, store }) => {
    const network = new FormerNetwork(keys, name);
    const read = await readNetwork(network, store);
    if (isRefusal(read)) return read;
    const used = usedOf((await network.kept()).used, read);
    if (isRefusal(used)) return used;
    for (const { address, container } of used)
      io.stdout.write(`${address}   container ${printable(container)}\n`);
    const all = `${used.length} of ${counted(sizeOf(read.addresses, used), "address is a container's", "addresses are containers'")} (dry run)`;
    io.stdout.write(`network ${printable(name)} would be pool ${read.pool.name}; ${all}\n`);
    return undefined;
  });
}

async function take(context: CommandContext, etcd: EtcdTarget, name: string): Promise<Refusal | undefined> {
  const { io } = context;
  // The rules take longer to load than the rest of berthctl takes to run.
  const { withEtcdReviews } = await import("../embedded/etcd-reviews.ts");
  return await withEtcd(io, etcd, ({ keys, store }) =>
    withEtcdReviews(context, etcd, async (webhook, backend) => {
      const make = async (kind: KindFacts, metadata: object, spec: object) => {
        const subject = madeOf(kind, metadata, spec);
        if (isRefusal(subject)) return subject.message;
        const submitted = await submit({ webhook, backend, io, dryRun: false }, subject);
        return submitted.kind === "refused" ? submitted.why : undefined;
      };
      const imported = await importNetwork({
        ...{ network: new FormerNetwork(keys, name), store, clock: io.clock },
        makePool: ({ name: pool, spec }: PoolRecord) => make(IP_POOL, { name: pool }, spec),
        makeClaim: (claim: ClaimKey, address: Address) =>
          make(IP_CLAIM, claim, { request: { addresses: [address] } }),
        releaseClaim: async (claim) => {
          const deleted = await deleteObject(
            { webhook, backend, io, dryRun: false },
            { kind: IP_CLAIM, ...claim },
          );
          return deleted?.kind === "refused" ? deleted.why : undefined;
        },
        report: ({ address, container }) =>
          void io.stdout.write(`${address}   container ${printable(container)}\n`),
      });
      if (isRefusal(imported)) return imported;
      const { pool, kept, addresses } = imported;
      io.stdout.write(
        `network ${printable(name)} is pool ${pool}: ${kept} of ${counted(addresses, "address is a container's", "addresses are containers'")}; cni-ipam-etcd gives none of them any more\n`,
      );
      return undefined;
    }),
  );
}

function madeOf(kind: KindFacts, metadata: object, spec: object): Subject | Refusal {
  return subjectOf({ kind, json: { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, spec } });
}
