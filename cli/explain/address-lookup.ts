// SPDX-License-Identifier: Apache-2.0
// What `who` and `explain` find out of one address, with the rights that this user has.

import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { podState } from "../../allocator/manifest/kubernetes-object.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, readableCache } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { reportedAddresses } from "../backend/reported-addresses.ts";
import { type AddressReport, addressReportOf } from "./address-report.ts";
import { occupyOne, withPodOfBlock } from "./occupied-addresses.ts";

export interface AddressLookup {
  readonly view: RecordCache;
  readonly report: AddressReport;
  /** What of the namespace was looked through, as far as this user may list it, because the reservation may not be read. */
  readonly searched: "claims" | "claims and pods";
}

/**
 * By the address's own records. Whoever may not read its reservation is told of the claims and pods of `namespace`, which is
 * his. Throws STORE_READ_ONLY if he may not read those claims either.
 */
export async function lookUp(backend: Backend, address: Address, namespace: string): Promise<AddressLookup> {
  const records = new AllowedRecords(backend.store, []);
  const { view, unread } = await readableCache(records, address);
  const { hidden } = records;
  if (hidden.has("reservation")) {
    for (const stored of await backend.claims(namespace))
      if (stored.record.addresses.includes(address)) view.apply("claim", { type: "put", stored });
  }
  await occupyOne(view, backend, address);
  const uses = await backend.uses([...view.claims()].map(({ record }) => record));
  const seen = { view, place: backend.place, unread, hidden };
  const report = await withPodOfBlock(addressReportOf(seen, uses, address), backend);
  return report.state === "unseen"
    ? { view, ...(await withOwnPod(report, backend, namespace)) }
    : { view, report, searched: "claims" };
}

/** The report with the pod of the namespace that says that it has the address. */
async function withOwnPod(
  report: AddressReport,
  { world }: Backend,
  namespace: string,
): Promise<Omit<AddressLookup, "view">> {
  const pods = await ifAllowed(() => world.objects("Pod", namespace));
  if (pods === undefined) return { report, searched: "claims" };
  const searched = "claims and pods";
  const found = pods.find(
    (pod) =>
      pod.metadata.namespace === namespace &&
      !podState(pod).ended &&
      !pod.spec.flag("hostNetwork") &&
      reportedAddresses(pod).has(report.address),
  );
  if (found === undefined) return { report, searched };
  const { name, uid } = found.metadata;
  return { report: { ...report, used: true, pod: { namespace, name, uid } }, searched };
}
