// SPDX-License-Identifier: Apache-2.0
import type { Dns } from "../../cni/result.ts";

/**
 * The contents of a resolv.conf as host-local reads them: of `domain` the last, of everything else all of them, also
 * what resolv.conf(5) would ignore.
 */
export function parseResolvConf(text: string): Dns {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+/));
  const valuesOf = (keyword: string) =>
    lines.filter(([key]) => key === keyword).map(([, ...values]) => values);
  const nameservers = valuesOf("nameserver").flatMap(([first]) => first ?? []);
  const domain = valuesOf("domain").findLast(([first]) => first !== undefined)?.[0];
  const search = valuesOf("search").flat();
  const options = valuesOf("options").flat();
  return {
    ...(nameservers.length === 0 ? {} : { nameservers }),
    ...(domain === undefined ? {} : { domain }),
    ...(search.length === 0 ? {} : { search }),
    ...(options.length === 0 ? {} : { options }),
  };
}
