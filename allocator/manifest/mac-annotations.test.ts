// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import { strangeMac } from "./mac-annotations.ts";
import { IPS, MAC, readEntriesWithMacs } from "./mac-values.ts";
import { DEFAULT_NETWORK, NETWORKS } from "./network-attachments.ts";

/** What the pod's networks say beside MAC addresses of an interface each. */
function strange(ips: string, macs: string, networks: Readonly<Record<string, string>>): string | undefined {
  const request = readEntriesWithMacs(ips, IPS, { [MAC]: macs });
  assert.ok(!isRefusal(request));
  return strangeMac(networks, request.interfaces)?.message;
}

describe("a pod's networks that say a MAC address", () => {
  const [ips, macs] = ["10.20.0.1-10.20.0.3@net1", "02:00:00:00:00:01-02:00:00:00:00:03@net1"];
  const said = (...all: readonly string[]) =>
    JSON.stringify(all.map((mac) => ({ name: "lan", interface: "net1", mac })));
  const words =
    "the pod's networks say another MAC address of net1 than berth.dev/mac; take one of the two out";
  const rows: readonly [string, string, string | undefined][] = [
    ["is one of the list", said("02:00:00:00:00:02"), undefined],
    ["is none of the list", said("02:00:00:00:00:04"), words],
    ["is none at all", said("x"), words],
    [
      "are two, of which one is none of the list's for each",
      said("02:00:00:00:00:02", "02:00:00:00:00:03"),
      words,
    ],
    ["is not there", JSON.stringify([{ name: "lan" }]), undefined],
    [
      "is another interface's",
      JSON.stringify([{ name: "a" }, { name: "b", mac: "02:00:00:00:00:04" }]),
      undefined,
    ],
    [
      "stands with no name of the interface",
      JSON.stringify([{ name: "a", mac: "02:00:00:00:00:04" }]),
      words,
    ],
  ];
  for (const [what, networks, message] of rows) {
    it(`${message === undefined ? "are taken" : "are refused"} when it ${what}`, () =>
      assert.equal(strange(ips, macs, { [NETWORKS]: networks }), message));
  }

  it("are read once, however many MAC addresses the list has", () => {
    const dense = `[{"name":"lan","interface":"net1","mac":"02:00:00:00:99:99","x":[${"[{}],".repeat(4_000)}0]}]`;
    let reads = 0;
    const networks = {
      get [NETWORKS]() {
        reads++;
        return dense;
      },
      get [DEFAULT_NETWORK]() {
        reads++;
        return dense;
      },
    };
    const range = "02:00:00:00:00:00-02:00:00:00:03:ff@net1";
    assert.equal(strange("10.20.0.1-10.20.4.0@net1", range, networks), words);
    assert.equal(reads, 2);
  });
});
