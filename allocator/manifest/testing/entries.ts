// SPDX-License-Identifier: Apache-2.0
// Annotations, and the entries that are read of them.
import { granted } from "../../../test/support/fixtures.ts";
import { readRequest } from "../annotations.ts";

export const IPS = "berth.dev/ips";
export const CALICO = "cni.projectcalico.org";

/** The entries in words: those of one pod joined by +. */
export function entriesOf(annotations: Readonly<Record<string, string>>): string[] {
  return (granted(readRequest(annotations)).entries ?? []).map((entry) => entry.join("+"));
}
