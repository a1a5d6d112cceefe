// SPDX-License-Identifier: Apache-2.0
// What must be so at the end of a day.
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { CLAIMS, JOBS, type KubeItem, PODS, RESERVATIONS } from "../../kube/api/resource.ts";
import { appOf, hasEnded, listed, phaseOf } from "./day-calls.ts";
import { type DayCluster, NODE_NAMES } from "./day-cluster.ts";
import { type Applied, GENERATED, namesOf } from "./day-objects.ts";

/** What is not as it is to be: pods that wait or are missing, claims and reservations that nobody needs, addresses used twice. */
export async function unrest(
  { admin, kubelets }: DayCluster,
  { applied, scale }: { readonly applied: readonly Applied[]; readonly scale: number },
): Promise<readonly string[]> {
  const living = (await listed(admin, PODS)).filter((pod) => !hasEnded(pod));
  const jobs = (await listed(admin, JOBS)).filter((job) => !isOver(job)).map(({ metadata }) => metadata.name);
  const claims = await listed(admin, CLAIMS);
  return [
    ...waiting(living),
    ...missing(living, { applied, scale }),
    ...kubelets.flatMap((kubelet) => kubelet.waiting),
    ...unneeded(living, claims, jobs),
    ...orphans(await listed(admin, RESERVATIONS), claims),
    ...doubled(kubelets.flatMap((kubelet) => kubelet.addresses())),
  ];
}

function isOver(job: KubeItem): boolean {
  const conditions = new Fields(job).at("status").get("conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((one: unknown) => {
      const { type, status } = one as { readonly type?: string; readonly status?: string };
      return (type === "Complete" || type === "Failed") && status === "True";
    })
  );
}

function waiting(living: readonly KubeItem[]): string[] {
  return living
    .filter((pod) => phaseOf(pod) !== "Running" || pod.metadata.deletionTimestamp !== undefined)
    .map(({ metadata }) => `pod ${metadata.name} waits, to run or to be gone`);
}

/** Workloads that have too few or too many pods, and pods that people want. */
function missing(
  living: readonly KubeItem[],
  { applied, scale }: { readonly applied: readonly Applied[]; readonly scale: number },
): string[] {
  const count = (app: string) => living.filter((pod) => appOf(pod) === app).length;
  const wanted = [
    ...applied.map(({ name, replicas }) => [name, replicas] as const),
    ["daemon", NODE_NAMES.length] as const,
  ];
  const counts = wanted.flatMap(([name, replicas]) =>
    replicas === undefined || count(name) === replicas
      ? []
      : [`${name} has ${count(name)} of ${replicas} pods`],
  );
  const names = living.map(({ metadata }) => metadata.name);
  const generated = names.filter((name) => name.startsWith(GENERATED)).length;
  return [
    ...counts,
    ...namesOf(scale)
      .filter((name) => !names.includes(name))
      .map((name) => `pod ${name} is not there`),
    ...(generated === 3 * scale ? [] : [`${generated} of ${3 * scale} generated pods are there`]),
  ];
}

/** Claims that no pod has. The list of a Deployment, and the indexes of a Job that goes on, are needed by these. */
function unneeded(
  living: readonly KubeItem[],
  claims: readonly KubeItem[],
  jobs: readonly string[],
): string[] {
  const needed = new Set(living.map(({ metadata }) => metadata.annotations?.["berth.dev/claim"] ?? ""));
  return claims
    .filter(({ metadata }) => !needed.has(metadata.name))
    .filter((claim) => {
      const identity = new Fields(claim).at("spec").at("identity");
      const [kind, name] = [identity.text("kind"), identity.text("name")];
      const isSlot = kind === "Deployment" && identity.get("slot") !== undefined;
      return !isSlot && !(kind === "Job" && jobs.includes(name));
    })
    .map((claim) => {
      const message = new Fields(claim).at("status").text("message");
      return `claim ${claim.metadata.name} is needed by no pod (${message})`;
    });
}

/** Reservations of addresses that their claim does not have. */
function orphans(reservations: readonly KubeItem[], claims: readonly KubeItem[]): string[] {
  const addresses = new Map(
    claims.map((claim) => [claim.metadata.name, new Fields(claim).at("spec").get("addresses")]),
  );
  return reservations
    .filter((item) => {
      const spec = new Fields(item).at("spec");
      if (spec.get("releasedAt") !== undefined) return false;
      const held = addresses.get(spec.at("claim").text("name"));
      return !Array.isArray(held) || !held.includes(spec.text("address"));
    })
    .map((item) => {
      const name = new Fields(item).at("spec").at("claim").text("name");
      return `reservation ${item.metadata.name} is not of an address of claim ${name}`;
    });
}

function doubled(used: readonly string[]): string[] {
  const sorted = used.toSorted();
  return sorted
    .filter((address, n) => address === sorted[n - 1])
    .map((address) => `${address} is used twice`);
}
