// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import { GIVING_ROWS } from "../manifest/foreign-requests.ts";
import { LONGEST_VALUE } from "../manifest/merged-request.ts";
import { type Dialects, SYSTEMS } from "../model/dialect.ts";
import { ownAddressIn } from "./named-in-text.ts";

/** An address of a Berth pool, asked for in another system's words that Berth does not serve: that system would assign it, and Berth may give it to another pod. */
export function givenElsewhere(
  view: Pick<RecordReader, "pools">,
  annotations: Labels,
  dialects: Dialects | undefined,
): Refusal | undefined {
  for (const { key, system } of GIVING_ROWS) {
    const value = annotations[key] ?? "";
    if (dialects?.[system] === "none") continue;
    const whose = `annotation ${key} is ${SYSTEMS[system]}'s`;
    if (value.length > LONGEST_VALUE)
      return refuse("REQUEST_INVALID", `${whose}: it is longer than ${LONGEST_VALUE} characters`, {
        annotation: key,
      });
    const address = ownAddressIn(view, value);
    if (address === undefined) continue;
    const words = `${whose}, which would give ${address}: that is in a pool of berth's, which may give it to another pod; write it into berth.dev/ips in its place`;
    return refuse("REQUEST_INVALID", words, { annotation: key, address });
  }
  return undefined;
}
