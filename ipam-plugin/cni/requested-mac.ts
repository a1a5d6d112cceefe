// SPDX-License-Identifier: Apache-2.0
import { parseMac } from "../../allocator/ip/mac.ts";
import type { CniArgs } from "./args.ts";
import { invalid } from "./drop-in.ts";
import type { CniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/**
 * The MAC address that the interface is going to have, where somebody says it: an IPAM plugin runs while the interface is made, and its result has none. Main plugins, and
 * `tuning` behind them, take it of runtimeConfig, then of CNI_ARGS; between the two `bridge` takes args.cni.mac, and after both `macvlan` its own `mac`.
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
