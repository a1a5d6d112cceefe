// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../test/support/any-character.ts";
import { runsOf } from "../../test/support/runs.ts";
import { isRefusal } from "../base/errors.ts";
import { familyOf, parseAddress } from "../ip/address.ts";
import { ANNOTATION_FORMATS, readRequest } from "./annotations.ts";

const MIB = 1024 * 1024;

/** Repeats the part until the whole has a mebibyte. */
function megabyteOf(part: string, around: (text: string) => string = (text) => text): string {
  return around(part.repeat(Math.floor(MIB / part.length)));
}

/** A mebibyte of each: an API server lets 256 KiB of annotations through. */
const HUGE: readonly string[] = [
  megabyteOf("1"),
  megabyteOf(";"),
  megabyteOf(","),
  megabyteOf("-"),
  megabyteOf("10.20.0.51;"),
  megabyteOf("10.20.0.51,"),
  megabyteOf("::1/"),
  megabyteOf("10.0.0.0-10.0.3.255,"),
  megabyteOf("10.0.0.0-10.0.3.255;"),
  megabyteOf("fd00::-fd00::3ff/"),
  megabyteOf("db,"),
  megabyteOf("["),
  megabyteOf('[{"a":'),
  megabyteOf('"::1",', (text) => `[${text}"::1"]`),
  megabyteOf('"db",', (text) => `[${text}"db"]`),
  megabyteOf("1h"),
  megabyteOf("IPv4,"),
  megabyteOf("\u{1f6a2}"),
  megabyteOf("\u202e\u0000\n"),
  megabyteOf("\ud83d"),
];

describe("annotations of a mebibyte", () => {
  for (const { key } of ANNOTATION_FORMATS) {
    it(`${key} are refused in a line, and soon`, () => {
      for (const value of HUGE) {
        const began = process.cpuUsage();
        const refused = readRequest({ [key]: value }, undefined, "macs");
        const { user, system } = process.cpuUsage(began);
        const what = `${value.slice(0, 12)}...`;
        assert.ok(isRefusal(refused), what);
        assert.ok(refused.message.length < 500, what);
        assert.doesNotMatch(refused.message, /\p{Cc}/u, what);
        assert.ok(user + system < 500_000, `${what} took ${(user + system) / 1000} ms of CPU`);
      }
    });
  }
});

/** As long as values may be, and longer than any list that is served. */
const LONG = 60_000;
const longOf = (part: string, around = (inner: string) => inner) =>
  around(part.repeat(Math.floor(LONG / part.length)));

describe("annotations of 60,000 characters", () => {
  for (const key of ["ovn.kubernetes.io/ip_pool", "networking.alibaba.com/ip-pool"]) {
    it(`${key} are no longer list than berth.dev/ips may be`, () => {
      const refused = readRequest({ [key]: longOf("10.20.0.51,") });
      assert.match(isRefusal(refused) ? refused.message : "", /more than 1024 entries/);
    });
  }

  it("of JSON are not parsed, for its values take ten times its length", (context) => {
    const parse = context.mock.method(JSON, "parse");
    for (const { key } of ANNOTATION_FORMATS) {
      for (const part of ["[],", "{},", '{"a":1},', '"a",', "1,", `${"[".repeat(900)}${"]".repeat(900)},`])
        assert.ok(
          isRefusal(readRequest({ [key]: longOf(part, (inner) => `[${inner}1]`) }, undefined, "macs")),
          key,
        );
    }
    assert.equal(parse.mock.callCount(), 0);
  });
});

const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc
    .array(
      fc.constantFrom(
        "10.20.0.1",
        "10.20.0.9",
        "fd00::1",
        "fd00::9",
        "-",
        ",",
        "/",
        ";",
        " ",
        "[",
        "]",
        '"',
        "db",
      ),
      { maxLength: 12 },
    )
    .map((services) => services.join("")),
);

describe("any annotations", () => {
  it("give a request that keeps its promises, or words", () => {
    const annotations = fc.dictionary(fc.constantFrom(...ANNOTATION_FORMATS.map(({ key }) => key)), text);
    fc.assert(
      fc.property(annotations, (given) => {
        const request = readRequest(given);
        if (isRefusal(request)) return assert.match(request.message, /^annotation \S+: /);
        for (const entry of request.entries ?? []) {
          assert.ok(entry.length > 0);
          const isPlaced = request.interfaces !== undefined;
          assert.ok(isPlaced || new Set(entry.map(familyOf)).size === entry.length);
          assert.ok(entry.every((address) => parseAddress(address) === address));
        }
        assert.notDeepEqual(request.pools, []);
        assert.notDeepEqual(request.entries, []);
      }),
      { numRuns: runsOf(2_000) },
    );
  });

  it("read their own words again: ranges are what they list", () => {
    const range = fc.record({ first: fc.nat(250), more: fc.nat(20) });
    fc.assert(
      fc.property(range, ({ first, more }) => {
        const list = Array.from(
          { length: more + 1 },
          (_, i) => `10.0.${(first + i) >> 8}.${(first + i) & 255}`,
        );
        const short = `${list[0]}-${list.at(-1)}`;
        assert.deepEqual(
          readRequest({ "berth.dev/ips": short }),
          readRequest({ "berth.dev/ips": list.join(";") }),
        );
      }),
    );
  });
});
