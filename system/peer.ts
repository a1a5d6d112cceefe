// SPDX-License-Identifier: Apache-2.0
import { isIPv6 } from "node:net";

/** An IPv4 address that came to a socket of both families. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

interface Remote {
  readonly remoteAddress?: string | undefined;
}

/** Over a unix socket there is one. */
export function addressOf({ remoteAddress = "local" }: Remote): string {
  return MAPPED.exec(remoteAddress)?.[1] ?? remoteAddress;
}

/** Who counts as one: an IPv4 address, or a /64 of IPv6, of which whoever has one address may have all. */
export function peerOf(remote: Remote): string {
  const whole = addressOf(remote);
  if (!isIPv6(whole)) return whole;
  const [address = ""] = whole.split("%");
  const [head = [], tail] = address
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = tail === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...Array<string>(zeros).fill("0"), ...(tail ?? [])];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
