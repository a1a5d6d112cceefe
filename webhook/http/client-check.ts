// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Whose client certificate lets him send reviews: one of the names (CN) with one of the organizations (O). The authority alone
 * says little: that of a cluster signs the certificates of everybody who may request one.
 */
export interface TrustedClients {
  readonly names: readonly string[];
  readonly organizations: readonly string[];
  /** Who may read: `all`, if absent, because probes and scrapes bring no certificate; `trusted` on a host that others use. */
  readonly readers?: "all" | "trusted";
  /** Where a certificate that is taken is to be had; ends each refusal. The webhook's variables if absent. */
  readonly advice?: string;
}

/**
 * What API servers have: kubeadm's certificate for kubelets, that of k3s and RKE2, and one that is made for Berth alone.
 * Who can get the organizations of Kubernetes that stand here may do everything there anyway.
 */
export const TRUSTED_CLIENTS: TrustedClients = {
  names: ["kube-apiserver", "kube-apiserver-kubelet-client", "system:apiserver"],
  organizations: ["berth.dev:reviewers", "kubeadm:cluster-admins", "system:masters"],
};

/** Why a request may change nothing, in words for whoever runs the API server; undefined: it may. */
export function clientObjection(
  { method, socket }: IncomingMessage,
  trusted: TrustedClients,
  now: number,
): string | undefined {
  const isReading = method === "GET" || method === "HEAD";
  if (isReading && trusted.readers !== "trusted") return undefined;
  return certificateObjection(socket, trusted, now);
}

/** The same for whatever is sent on a connection, which may last for longer than the certificate that it began with. */
export function certificateObjection(
  socket: Socket,
  trusted: TrustedClients,
  now: number,
): string | undefined {
  const { advice } = trusted;
  const none = advised(
    "berth takes reviews only from a client with a certificate, and this one brought none",
    advice,
  );
  if (!(socket instanceof TLSSocket)) return none;
  const client = clientOf(socket);
  if (client === undefined) return none;
  if (!socket.authorized)
    return advised(
      "berth does not trust the authority of this client certificate",
      advice ?? "see BERTH_CLIENT_CA",
    );
  if (!(client.endsAt >= now))
    return advised("this client certificate has ended", advice ?? "the API server needs a new one");
  const { names, organizations } = client;
  // with several names it would be two clients at once
  const isNamed = names.length === 1 && names.every((name) => trusted.names.includes(name));
  if (isNamed && organizations.some((one) => trusted.organizations.includes(one))) return undefined;
  const whose = `CN=${names.join(",") || "(none)"} and O=${organizations.join(",") || "(none)"}`;
  return advised(
    `berth takes no reviews from a client certificate with ${whose}`,
    advice ?? "see BERTH_CLIENT_NAMES and BERTH_CLIENT_ORGANIZATIONS",
  );
}

/** What a certificate says of its owner. */
interface Client {
  /** Milliseconds since 1970; NaN: it does not say. */
  readonly endsAt: number;
  readonly names: readonly string[];
  readonly organizations: readonly string[];
}

/** A connection has the certificate that it began with, and to read it takes a tenth of the time of a whole review. */
const clients = new WeakMap<TLSSocket, Client>();

/** Undefined: it brought no certificate. */
function clientOf(socket: TLSSocket): Client | undefined {
  const known = clients.get(socket);
  if (known !== undefined) return known;
  const { subject, valid_to: end } = socket.getPeerCertificate();
  if (subject === undefined) return undefined;
  const [names, organizations] = [valuesOf(subject.CN), valuesOf(subject.O)];
  const client = { endsAt: Date.parse(end), names, organizations };
  clients.set(socket, client);
  return client;
}

function advised(words: string, advice: string | undefined): string {
  return advice === undefined ? words : `${words}; ${advice}`;
}

/** A subject may have a part several times. */
function valuesOf(part: unknown): readonly string[] {
  const parts: readonly unknown[] = Array.isArray(part) ? part : [part];
  return parts.filter((value) => typeof value === "string");
}
