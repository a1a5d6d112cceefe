// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { Folder } from "../testing/folder.ts";
import { foretellDynamic } from "./dynamic-pod.ts";

const UNSERVED =
  "asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: ";

describe("a pod that asks for nothing, and whose pools are disabled", () => {
  const disabled = (name: string, n: number, spec: object) =>
    poolRecord(name, `10.${n}.0.0/24`, { blockSize: { ipv4: 26 }, disabled: true, ...spec });
  const all = { matchLabels: {} };

  for (const [what, pools, remedy] of [
    [
      "the default",
      [disabled("rest", 2, { default: true })],
      'pool "rest" would serve it, and is disabled (spec.disabled)',
    ],
    [
      "several that select it",
      [disabled("a", 1, { namespaceSelector: all }), disabled("b", 2, { namespaceSelector: all })],
      'pools "a", "b" would serve it, and are disabled (spec.disabled)',
    ],
    [
      "one of some nodes",
      [disabled("zone", 1, { nodeSelector: {} })],
      'pool "zone" would serve it, and is disabled (spec.disabled)',
    ],
    ["one that is not for it", [disabled("own", 1, {})], "make a pool with blockSize (docs/blocks.md)"],
  ] as const) {
    it(`is told of ${what}`, async (t) => {
      const data = await Folder.of(t, { pools: [...pools], objects: [pod("a", { uid: "u" })] });
      const { stdout } = await data.call("explain", "pod/shop/a");
      assert.equal(stdout.split("\n")[0], `pod/shop/a ${UNSERVED}${remedy}`);
    });

    it(`is told of ${what} before it is there`, () => {
      const told = foretellDynamic(viewOf({ pools }), { namespace: "shop", labels: {}, annotations: {} }, {});
      assert.equal(told, `it ${UNSERVED}${remedy}`);
    });
  }
});
