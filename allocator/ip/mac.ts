// SPDX-License-Identifier: Apache-2.0
// A MAC address is kept as the link-local address that it makes (RFC 4291, appendix A), so that it is reserved as any other.

import { type Refusal, refuse } from "../base/errors.ts";
import { type Address, familyOf, fromNumber, parseAddress, toNumber } from "./address.ts";

/** As Go's net.ParseMAC reads those of six bytes, and so every main plugin. */
const FORM = /^[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){5}|[0-9a-f]{2}(?:\.[0-9a-f]{4}){2})$/i;
const LINK_LOCAL = 0xfe80n << 112n;
/** ff:fe in the middle of an interface identifier, and the bit of it that says which MAC addresses are local. */
const MIDDLE = 0xfffen << 24n;
const LOCAL = 1n << 57n;

/** In lower case, with colons; undefined: it is none, or one that no interface can have: of a group, or zero. */
export function parseMac(text: string): string | undefined {
  if (!FORM.test(text)) return undefined;
  const isGroup = (Number.parseInt(text.slice(0, 2), 16) & 1) === 1;
  const digits = text.toLowerCase().replaceAll(/[:.-]/g, "");
  const mac = withColons(digits);
  return isGroup || mac === "00:00:00:00:00:00" ? undefined : mac;
}

/** Of a MAC address that was parsed. */
export function addressOfMac(mac: string): Address {
  const n = BigInt(`0x${mac.replaceAll(":", "")}`);
  const [maker, own] = [n >> 24n, n & 0xffffffn];
  return fromNumber(LINK_LOCAL | (((maker << 40n) | MIDDLE | own) ^ LOCAL), "IPv6");
}

/** Undefined: no MAC address makes it. */
export function macOfAddress(address: Address): string | undefined {
  if (familyOf(address) !== "IPv6") return undefined;
  const n = toNumber(address);
  const id = (n & ((1n << 64n) - 1n)) ^ LOCAL;
  if (n >> 64n !== LINK_LOCAL >> 64n || ((id >> 24n) & 0xffffn) !== 0xfffen) return undefined;
  const digits = (((id >> 40n) << 24n) | (id & 0xffffffn)).toString(16).padStart(12, "0");
  return parseMac(withColons(digits));
}

function withColons(digits: string): string {
  return digits.replaceAll(/(..)(?!$)/g, "$1:");
}

/** A text that may name addresses by which MAC addresses are kept, with what its reader wrote. */
export function sayMacs(text: string): string {
  return text.replaceAll(/\bfe80:[:0-9a-f]+(?![:0-9a-f]| \(MAC )/g, (written) => {
    const address = parseAddress(written);
    const mac = address && macOfAddress(address);
    return mac === undefined ? written : `${written} (MAC address ${mac})`;
  });
}

/** A refusal whose words may name addresses by which MAC addresses are kept. */
export function refuseAddress(...[code, message, details]: Parameters<typeof refuse>): Refusal {
  return refuse(code, sayMacs(message), details);
}
