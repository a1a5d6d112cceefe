// SPDX-License-Identifier: Apache-2.0
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Logger } from "../../allocator/base/ports.ts";

/** Whether who sends this header may read the metrics, which name pools and count their addresses. */
export type MetricsReader = (authorization: string | undefined) => boolean;

/** Who shows the token that the file has now: a Secret is changed in its place. Without one in it nobody may. */
export function whoShowsTokenOf(file: string, log: Logger): MetricsReader {
  return (authorization) => {
    const shown = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (shown === undefined) return false;
    const token = tokenOf(file, log);
    return token !== "" && timingSafeEqual(digestOf(shown), digestOf(token));
  };
}

function tokenOf(file: string, log: Logger): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    log.warn("the token for metrics cannot be read", { file, error });
    return "";
  }
}

/** Of one length, whatever it is made of. */
function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
