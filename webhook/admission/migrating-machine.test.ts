// SPDX-License-Identifier: Apache-2.0
// KubeVirt migrates a virtual machine live with a second pod, which has to run beside the first (docs/compared.md).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { attachmentOf, bindingTo, DB_POOL } from "../../test/support/fixtures.ts";
import { annotationsOf, applied, deniedAs, ownedBy, pod, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const OWNER = ownedBy("VirtualMachineInstance", "win11", "kubevirt.io/v1");
type Annotations = Readonly<Record<string, string>>;

/** What a replica in a cluster tells that pod of the machine: annotations, or why it is refused. */
async function told(world: World, name: string, annotations: Annotations): Promise<Annotations | string> {
  const { embedded: _, ...inCluster } = world.admission;
  const object = pod(name, { owner: OWNER, annotations });
  const answer = await createHandlers(inCluster)["/mutate/pods"](review(object), AbortSignal.timeout(60_000));
  await world.settle();
  return answer.allowed ? annotationsOf(applied(object, answer)) : deniedAs(answer);
}

/** The machine's claim is the pod's, which runs on n1. */
async function bind(world: World, podName: string, token = ""): Promise<void> {
  const [claim] = await world.all("claim");
  assert.ok(claim !== undefined);
  const record = { ...claim.record, binding: bindingTo(podName, "n1", { token }) };
  assert.equal((await world.store.replace("claim", claim, record)).kind, "replaced");
  await world.settle();
}

/** The agent of n1 says that its sandbox has ended. */
async function detach(world: World, podName: string): Promise<void> {
  const [claim] = await world.all("claim");
  assert.ok(claim !== undefined);
  await world.store.report(claim, { attachment: attachmentOf(podName, { node: "n1", detached: true }) });
  await world.settle();
}

describe("the second pod of a virtual machine", () => {
  for (const [what, annotations] of [
    ["an address", { "berth.dev/ips": "10.20.0.70" }],
    ["a pool", { "berth.dev/pools": "db/IPv4" }],
  ] as const) {
    it(`that asks for ${what} is refused beside the first, and has its address after it`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const first = await told(world, "virt-launcher-win11-a", annotations);
      assert.ok(typeof first !== "string", String(first));
      await bind(world, "virt-launcher-win11-a", first["berth.dev/token"]);
      assert.match(
        String(await told(world, "virt-launcher-win11-b", annotations)),
        /^CLAIM_BUSY: 10\.20\.0\.\d+ \(win11\) is bound to pod virt-launcher-win11-a$/,
      );
      await detach(world, "virt-launcher-win11-a");
      const second = await told(world, "virt-launcher-win11-b", annotations);
      assert.ok(typeof second !== "string", String(second));
      assert.equal(second["berth.dev/addresses"], first["berth.dev/addresses"]);
    });
  }
});
