// SPDX-License-Identifier: Apache-2.0
// What a call asks for, whoever says it: addresses of Berth, and the MAC address of the interface.

import { type Address, parseAddress, parseCidr } from "../../allocator/ip/address.ts";
import { parseMac } from "../../allocator/ip/mac.ts";
import { type CniArgs, invalidArg } from "./args.ts";
import { invalid } from "./drop-in.ts";
import { type CniError, cniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/** An address that the runtime asks for. host-local ignores the prefix, static insists on it. */
export interface Requested {
  readonly address: Address;
  readonly prefixLength?: number;
  readonly text: string;
}

/** Where requests came from: static lets the more specific source replace the others, host-local adds them up. */
export interface Requests {
  readonly runtimeConfig: readonly Requested[];
  readonly argsCni: readonly Requested[];
  readonly cniArgs: readonly Requested[];
}

/** Every address asked for, each once, whatever the source. */
export function requestedAddresses({ runtimeConfig, argsCni, cniArgs }: Requests): readonly Address[] {
  const all = [...cniArgs, ...argsCni, ...runtimeConfig].map(({ address }) => address);
  return [...new Set(all)];
}

/** `address/prefix`, host bits kept; undefined for anything else. */
export function parseHost(text: string): { address: Address; prefixLength: number } | undefined {
  const cidr = parseCidr(text);
  const address = parseAddress(text.split("/", 1)[0] ?? "");
  return cidr && address && { address, prefixLength: cidr.prefixLength };
}

/** Reads what the three sources ask for; `runtimeConfig` exists only if the main plugin declares the capability. */
export function readRequests(fields: Fields, args: CniArgs): Requests | CniError {
  const texts = {
    runtimeConfig: fields.section("runtimeConfig")?.texts("ips") ?? [],
    argsCni: fields.section("args")?.section("cni")?.texts("ips") ?? [],
  };
  if (fields.problem !== undefined) return fields.problem;
  const bad = args.ips.find((text) => readRequest(text) === undefined);
  if (bad !== undefined) return invalidArg(`IP=${args.ips.join(",")}`, `invalid IP address ${bad}`);
  const wrong = [...texts.argsCni, ...texts.runtimeConfig].find((text) => readRequest(text) === undefined);
  if (wrong === "") return cniError("INVALID_CONFIG", "cannot understand ip: IP <nil> not v4 nor v6");
  if (wrong !== undefined) return cniError("INVALID_CONFIG", `invalid IP address ${wrong}`);
  const read = (list: readonly string[]) => list.map(readRequest).filter((request) => request !== undefined);
  return { runtimeConfig: read(texts.runtimeConfig), argsCni: read(texts.argsCni), cniArgs: read(args.ips) };
}

function readRequest(text: string): Requested | undefined {
  const address = parseAddress(text);
  if (address !== undefined) return { address, text };
  const host = parseHost(text);
  return host && { ...host, text };
}

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
