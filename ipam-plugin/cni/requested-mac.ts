// SPDX-License-Identifier: Apache-2.0
import { parseMac } from "../../allocator/ip/mac.ts";
import type { CniArgs } from "./args.ts";
import { invalid } from "./drop-in.ts";
import type { CniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/**
 * The MAC address that the interface is going to have, where the call says it: an IPAM plugin runs before the interface is
 * complete, and returns none itself. Main plugins, and `tuning` behind them, read runtimeConfig, then CNI_ARGS; `bridge` reads
 * args.cni.mac between the two, `macvlan` its own `mac` after both.
 */
export function readMac(fields: Fields, args: CniArgs): string | undefined | CniError {
  const type = fields.text("type");
  const runtime = fields.section("runtimeConfig")?.text("mac");
  const cni = type === "bridge" ? fields.section("args")?.section("cni")?.text("mac") : undefined;
  const own = type === "macvlan" ? fields.text("mac") : undefined;
  if (fields.problem !== undefined) return fields.problem;
  const text = runtime || cni || args.mac || own;
  if (!text) return undefined;
  const mac = parseMac(text);
  return mac ?? invalid(`${text.slice(0, 40)} is no MAC address that an interface can have`);
}
