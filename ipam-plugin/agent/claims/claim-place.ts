// SPDX-License-Identifier: Apache-2.0

/** Neither a namespace nor a name has a colon. */
const OF_ETCD = /^(etcd-[a-z0-9]+):(.*)$/s;

/** What the journal calls a claim that is kept in an etcd which a network named. */
export function claimIn(etcd: string, claim: string): string {
  return `${etcd}:${claim}`;
}

/** The etcd that keeps a claim, and its name there; no etcd: where all claims were before networks could name one. */
export function placeOf(claim: string): { readonly etcd?: string; readonly claim: string } {
  const [, etcd, rest] = OF_ETCD.exec(claim) ?? [];
  return etcd === undefined || rest === undefined ? { claim } : { etcd, claim: rest };
}

/** Whether a claim of a cluster's agent is kept in the API server. */
export function isInApi(claim: string): boolean {
  return placeOf(claim).etcd === undefined;
}
