// SPDX-License-Identifier: Apache-2.0
// The ipam part of network configurations, read.
import assert from "node:assert/strict";
import { type CniArgs, readArgs } from "../args.ts";
import { isCniError } from "../errors.ts";
import { type IpamConfig, readIpam } from "../ipam-config.ts";
import { Fields } from "../json-fields.ts";
import { staticAddresses } from "../static.ts";
import type { Version } from "../versions.ts";

/** What else comes with the configuration. */
export interface Extras {
  readonly version?: Version;
  readonly args?: string;
  readonly rest?: object;
}

/** CNI_ARGS, which can be read. */
export function argsOf(text: string): CniArgs {
  const args = readArgs(text);
  assert.ok(!isCniError(args));
  return args;
}

/** The `ipam` part of a network configuration. */
export function read(ipam: unknown, { version = "1.0.0", args = "", rest = {} }: Extras = {}) {
  return readIpam(new Fields({ ipam, ...rest }), version, argsOf(args));
}

/** The same, which can be read. */
export function ipamOf(ipam: object, extras: Extras = {}): IpamConfig {
  const config = read(ipam, extras);
  assert.ok(!isCniError(config), isCniError(config) ? config.msg : "");
  return config;
}

/** Why it cannot be. */
export function wordsOf(ipam: unknown, extras: Extras = {}): string {
  const error = read(ipam, extras);
  assert.ok(isCniError(error), JSON.stringify(ipam));
  assert.ok([4, 6, 7].includes(error.code), `code ${error.code}`);
  return error.msg;
}

/** Addresses as address/length|gateway, or why there are none. */
export function staticOf(ipam: object, extras: Extras = {}) {
  const addresses = staticAddresses(
    ipamOf(ipam, extras),
    extras.version ?? "1.0.0",
    argsOf(extras.args ?? ""),
  );
  return isCniError(addresses)
    ? addresses.msg
    : addresses.map(({ address, prefixLength, gateway = "" }) => `${address}/${prefixLength}|${gateway}`);
}
