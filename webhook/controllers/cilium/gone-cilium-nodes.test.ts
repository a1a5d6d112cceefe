// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { GoneCiliumNodes } from "./gone-cilium-nodes.ts";

class Watched {
  heard: ((name: string, now: unknown) => void) | undefined;

  get(): undefined {
    return undefined;
  }

  onChange(heard: (name: string, now: unknown) => void): () => void {
    this.heard = heard;
    return () => {
      this.heard = undefined;
    };
  }
}

it("a node is gone when neither its Node nor its CiliumNode has been there for the grace, whichever went first", () => {
  const clock = new ManualClock();
  const gone = new GoneCiliumNodes(clock);
  const [nodes, ciliumNodes] = [new Watched(), new Watched()];
  const end = gone.follow(nodes, ciliumNodes);
  for (const [first, last] of [
    [nodes, ciliumNodes],
    [ciliumNodes, nodes],
  ] as const) {
    for (const one of [first, last]) one.heard?.("n1", {});
    first.heard?.("n1", undefined);
    clock.advance(NODE_GRACE_MS * 10);
    last.heard?.("n1", undefined);
    assert.equal(gone.isLong("n1"), false);
    clock.advance(NODE_GRACE_MS);
    assert.equal(gone.isLong("n1"), true);
  }
  end();
  assert.deepEqual([nodes.heard, ciliumNodes.heard], [undefined, undefined]);
});
