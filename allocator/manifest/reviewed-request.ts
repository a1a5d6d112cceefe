// SPDX-License-Identifier: Apache-2.0
// What a pod asked for when Berth was asked, written into it: as long as that stands there unchanged, the API server need not ask Berth
// a second time (ADR 0046).

import type { Labels } from "../base/ports.ts";
import { IDENTITY_ANNOTATIONS } from "../model/identity.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { ASSIGNED } from "./opt-in.ts";
import { OWN_REQUESTS } from "./own-keys.ts";

const KEYS = DIALECT_ROWS.flatMap(({ key, matches }) => (matches === undefined ? [key] : []));
/** A key's part before its slash, or the whole key where it has none, where that may say what a pod asks for and which pod it is. */
export const REQUEST_DOMAINS: readonly string[] = [
  ...new Set([...OWN_REQUESTS, ...IDENTITY_ANNOTATIONS, ...KEYS].map(domainOf)),
];
/** And such parts that have names in them, of networks and their namespaces. RE2 reads it as JavaScript does. */
export const NAMED_DOMAIN = /^[^/.]+[.][^/]+[.]kubernetes[.]io[/]/;

/** It stays in the pod for its life, and everybody who watches pods is sent it. */
const LONGEST = 512;

/**
 * `key=value` of all that may decide what a pod is given, and of what it was given (`assigned`), a line each; undefined where that is too
 * long for a pod to carry, or a value has lines of its own: the API server asks again then.
 */
export function reviewedRequest(annotations: Labels, assigned: Labels): string | undefined {
  const own = Object.entries(annotations).filter(([key]) => !ASSIGNED.includes(key));
  const lines = Object.entries({ ...Object.fromEntries(own), ...assigned }).filter(([key]) =>
    isOfRequest(key),
  );
  if (lines.some(([, value]) => value.includes("\n"))) return undefined;
  const text = lines.map(([key, value]) => `${key}=${value}`).join("\n");
  return text.length > LONGEST ? undefined : text;
}

function isOfRequest(key: string): boolean {
  return REQUEST_DOMAINS.includes(domainOf(key)) || NAMED_DOMAIN.test(key);
}

function domainOf(key: string): string {
  return key.split("/", 1)[0] ?? "";
}
