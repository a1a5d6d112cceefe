// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type Address, fromNumber, toNumber } from "../../../allocator/ip/address.ts";
import { isCniError } from "../../cni/errors.ts";
import { Fields } from "../../cni/json-fields.ts";
import { type RangeSet, readRangeSets } from "../../cni/range-set.ts";
import { AddressSet } from "../journal/address-set.ts";
import { address } from "../testing/node-bench.ts";
import { pickAddresses } from "./from-ranges.ts";

type RangeText = string | { subnet: string; rangeStart?: string; rangeEnd?: string; gateway?: string };

function setsOf(...sets: readonly (readonly RangeText[])[]): readonly RangeSet[] {
  const read = readRangeSets(
    sets.map((set) => set.map((range) => new Fields(typeof range === "string" ? { subnet: range } : range))),
  );
  assert.ok(!isCniError(read), isCniError(read) ? read.msg : "");
  return read;
}

function spaceWith(taken: readonly string[], last?: string): AddressSet {
  const space = new AddressSet();
  for (const text of taken) space.hold(address(text), "/d\0net\0other\0eth9");
  if (last !== undefined) space.advance(0, address(last));
  return space;
}

/** What is picked, or the words of the refusal. */
function pick(space: AddressSet, sets: readonly RangeSet[], ...requested: readonly string[]): string {
  const picked = pickAddresses(space, sets, requested.map(address));
  if (isRefusal(picked)) return picked.message;
  return picked.addresses.map((entry) => `${entry.address}/${entry.prefixLength}|${entry.gateway}`).join(" ");
}

/** Picks and takes until nothing is left. */
function drain(space: AddressSet, sets: readonly RangeSet[], most: number): readonly Address[] {
  const drained: Address[] = [];
  while (drained.length < most) {
    const picked = pickAddresses(space, sets, []);
    if (isRefusal(picked)) break;
    for (const [i, entry] of picked.addresses.entries()) {
      space.hold(entry.address, `/d\0net\0c${drained.length}\0eth0`);
      space.advance(i, entry.address);
      drained.push(entry.address);
    }
  }
  return drained;
}

describe("picking from ranges", () => {
  it("begins at the start and skips the gateway", () => {
    assert.equal(pick(spaceWith([]), setsOf(["10.0.0.0/29"])), "10.0.0.2/29|10.0.0.1");
    assert.equal(pick(spaceWith([]), setsOf(["2001:db8:1::/64"])), "2001:db8:1::2/64|2001:db8:1::1");
  });

  it("goes on behind the last that was given away", () => {
    assert.equal(pick(spaceWith([], "10.0.0.5"), setsOf(["10.0.0.0/29"])), "10.0.0.6/29|10.0.0.1");
  });

  it("comes round at the end (host-local: last .5, .6 taken)", () => {
    assert.equal(pick(spaceWith(["10.0.0.6"], "10.0.0.5"), setsOf(["10.0.0.0/29"])), "10.0.0.2/29|10.0.0.1");
  });

  it("finds the only one left, be it the last that was given away", () => {
    const taken = ["10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6"];
    assert.equal(pick(spaceWith(taken, "10.0.0.3"), setsOf(["10.0.0.0/29"])), "10.0.0.3/29|10.0.0.1");
  });

  it("advances to the next subnet of the set, and from the last to the first", () => {
    const sets = setsOf(["10.0.0.0/30", "10.0.1.0/30", "10.0.2.0/30"]);
    assert.equal(pick(spaceWith([], "10.0.1.2"), sets), "10.0.2.2/30|10.0.2.1");
    assert.equal(pick(spaceWith([], "10.0.2.2"), sets), "10.0.0.2/30|10.0.0.1");
    assert.equal(pick(spaceWith(["10.0.0.2", "10.0.1.2"], "10.0.2.2"), sets), "10.0.2.2/30|10.0.2.1");
  });

  it("begins anew when the last is not in the set any more", () => {
    assert.equal(pick(spaceWith([], "192.168.9.9"), setsOf(["10.0.0.0/29"])), "10.0.0.2/29|10.0.0.1");
  });

  it("says what is full", () => {
    const taken = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"];
    const words = "failed to allocate for range 0: no IP addresses available in range set: 10.0.0.1-10.0.0.6";
    assert.equal(pick(spaceWith(taken), setsOf(["10.0.0.0/29"])), words);
    assert.equal(pick(spaceWith(taken, "10.0.0.6"), setsOf(["10.0.0.0/29"])), words);
  });

  it("never gives away network, broadcast or anycast address, whatever the bounds say", () => {
    const v4 = setsOf([
      { subnet: "10.0.0.0/29", rangeStart: "10.0.0.0", rangeEnd: "10.0.0.7", gateway: "10.0.0.6" },
    ]);
    assert.deepEqual(drain(new AddressSet(), v4, 20), [
      "10.0.0.1",
      "10.0.0.2",
      "10.0.0.3",
      "10.0.0.4",
      "10.0.0.5",
    ]);
    const v6 = setsOf([{ subnet: "fd00::/125", rangeStart: "fd00::", gateway: "fd00::4" }]);
    assert.deepEqual(drain(new AddressSet(), v6, 20), [
      "fd00::1",
      "fd00::2",
      "fd00::3",
      "fd00::5",
      "fd00::6",
      "fd00::7",
    ]);
    for (const text of ["10.0.0.0", "10.0.0.7"]) {
      assert.equal(
        pick(spaceWith([]), v4, text),
        `failed to allocate for range 0: requested ip ${text} is the network or broadcast address of 10.0.0.0/29`,
      );
    }
    const none = setsOf([{ subnet: "10.0.0.0/29", rangeStart: "10.0.0.7", rangeEnd: "10.0.0.7" }]);
    assert.ok(pick(spaceWith([]), none).includes("no IP addresses available"));
  });

  it("takes one address of each set, or none", () => {
    const sets = setsOf(["10.1.2.0/24"], ["11.1.2.0/24"], ["fd00::/64"]);
    assert.equal(pick(spaceWith([]), sets), "10.1.2.2/24|10.1.2.1 11.1.2.2/24|11.1.2.1 fd00::2/64|fd00::1");
    const full = setsOf(["10.1.2.0/24"], ["11.1.2.0/30"]);
    assert.equal(
      pick(spaceWith(["11.1.2.2"]), full),
      "failed to allocate for range 1: no IP addresses available in range set: 11.1.2.1-11.1.2.2",
    );
  });
});

describe("requested addresses", () => {
  const sets = setsOf(["172.16.1.0/24", "10.1.2.0/24"], ["2001:db8:1::/48"]);

  it("go to the set that contains them, whatever their order", () => {
    const both = "10.1.2.88/24|10.1.2.1 2001:db8:1::999/48|2001:db8:1::1";
    assert.equal(pick(spaceWith([]), sets, "10.1.2.88", "2001:db8:1::999"), both);
    assert.equal(pick(spaceWith([]), sets, "2001:db8:1::999", "10.1.2.88"), both);
    assert.equal(
      pick(spaceWith([]), sets, "2001:db8:1::999"),
      "172.16.1.2/24|172.16.1.1 2001:db8:1::999/48|2001:db8:1::1",
    );
  });

  it("are refused when there is one too many, or none contains it", () => {
    assert.equal(
      pick(spaceWith([]), sets, "10.1.2.88", "10.1.2.77"),
      "failed to allocate all requested IPs: 10.1.2.77",
    );
    assert.equal(
      pick(spaceWith([]), sets, "9.9.9.9", "8.8.8.8"),
      "failed to allocate all requested IPs: 9.9.9.9 8.8.8.8",
    );
    for (const text of ["10.1.2.0", "10.1.2.255"]) {
      assert.equal(pick(spaceWith([]), sets, text), `failed to allocate all requested IPs: ${text}`);
    }
  });

  it("are refused when taken or the gateway's", () => {
    assert.equal(
      pick(spaceWith(["10.1.2.77"]), sets, "10.1.2.77"),
      "failed to allocate for range 0: requested IP address 10.1.2.77 is not available in range set " +
        "172.16.1.1-172.16.1.254,10.1.2.1-10.1.2.254; container other (eth9) has it",
    );
    assert.equal(
      pick(spaceWith([]), sets, "10.1.2.1"),
      "failed to allocate for range 0: requested ip 10.1.2.1 is subnet's gateway",
    );
  });
});

describe("draining ranges", () => {
  it("gives every usable address once, round from any position", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 27, max: 30 }),
        fc.nat(40),
        fc.uniqueArray(fc.integer({ min: 1, max: 30 })),
        (length, last, taken) => {
          const sets = setsOf([`10.0.0.0/${length}`, `10.0.1.0/${length}`]);
          const space = spaceWith(
            taken.map((n) => `10.0.0.${n}`),
            `10.0.0.${last}`,
          );
          const broadcast = 2 ** (32 - length) - 1;
          const free = broadcast - 2; // without network, broadcast and gateway
          const inside = taken.filter((n) => n > 1 && n < broadcast).length;
          const drained = drain(space, sets, 1000);
          assert.equal(new Set(drained).size, drained.length);
          assert.equal(drained.length, 2 * free - inside);
          assert.ok(
            drained.every(
              (given) => !taken.includes(Number(given.split(".")[3])) || given.startsWith("10.0.1."),
            ),
          );
        },
      ),
    );
  });

  it("finds the last free one of a /64 without walking it", () => {
    const sets = setsOf([{ subnet: "fd00::/64", rangeEnd: "fd00::1:0000" }]);
    const space = new AddressSet();
    const first = toNumber(address("fd00::"));
    for (let n = 2n; n <= 0x10000n; n++) {
      if (n !== 0x8000n) space.hold(fromNumber(first + n, "IPv6"), "x");
    }
    assert.equal(pick(space, sets), "fd00::8000/64|fd00::1");
  });
});

describe("address space", () => {
  it("lets go only for the holder", () => {
    const space = new AddressSet();
    const one = address("10.0.0.1");
    space.hold(one, "a");
    space.hold(one, "b"); // the claim went on to another sandbox
    space.release(one, "a");
    assert.equal(space.holderOf(one), "b");
    space.release(one, "b");
    assert.equal(space.holderOf(one), undefined);
    assert.deepEqual(space.held(), []);
    assert.equal(space.nextFree("IPv4", toNumber(one), toNumber(one)), toNumber(one));
  });

  it("keeps the families apart", () => {
    const space = new AddressSet();
    space.hold(address("0.0.0.2"), "a");
    assert.equal(space.nextFree("IPv6", 2n, 2n), 2n);
    assert.equal(space.nextFree("IPv4", 2n, 2n), undefined);
  });
});
