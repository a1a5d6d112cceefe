// SPDX-License-Identifier: Apache-2.0
import { type CniError, cniError } from "./errors.ts";

/** What is spoken, oldest first. Support is an exact match: no ranges, no `1.0` for `1.0.0` (SPEC, "Version considerations"). */
export const VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;
export type Version = (typeof VERSIONS)[number];
export const NEWEST: Version = "1.1.0";
/** What a configuration without cniVersion means. */
export const OLDEST: Version = "0.1.0";

/** Commands that came after 0.1.0 -> the first version that has them. */
const SINCE: ReadonlyMap<string, Version> = new Map([
  ["CHECK", "0.4.0"],
  ["GC", "1.1.0"],
  ["STATUS", "1.1.0"],
] as const);

type Parts = readonly [major: number, minor: number, micro: number];

export function isSupported(text: string): text is Version {
  return VERSIONS.some((version) => version === text);
}

export function atLeast(version: Version, least: Version): boolean {
  return VERSIONS.indexOf(version) >= VERSIONS.indexOf(least);
}

/** The version to answer in. The order of the checks and their texts are those of the reference (skel). */
export function negotiate(command: string, text: string): Version | CniError {
  const since = SINCE.get(command);
  if (since !== undefined) {
    const parts = parseParts(text);
    if (typeof parts === "string") return cniError("DECODING_FAILURE", parts);
    if (isBefore(parts, since)) {
      return cniError("INCOMPATIBLE_VERSION", `config version does not allow ${command}`);
    }
  }
  if (isSupported(text)) return text;
  const spoken = VERSIONS.map((version) => JSON.stringify(version)).join(" ");
  return cniError(
    "INCOMPATIBLE_VERSION",
    "incompatible CNI versions",
    `config is ${JSON.stringify(text)}, plugin supports [${spoken}]`,
  );
}

/** The answer to VERSION: one object on one line. */
export function versionAnswer(): string {
  return `${JSON.stringify({ cniVersion: NEWEST, supportedVersions: VERSIONS })}\n`;
}

function parseParts(text: string): Parts | string {
  const texts = text.split(".");
  if (texts.length > 3) return `invalid version ${JSON.stringify(text)}: too many parts`;
  const names = ["major", "minor", "micro"];
  for (const [i, part] of texts.entries()) {
    if (!/^[+-]?\d+$/.test(part)) {
      return `failed to convert ${names[i]} version part ${JSON.stringify(part)}: not a number`;
    }
  }
  const [major = 0, minor = 0, micro = 0] = texts.map(Number);
  return [major, minor, micro];
}

function isBefore(parts: Parts, version: Version): boolean {
  for (const [i, part] of version.split(".").map(Number).entries()) {
    const own = parts[i] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}
