// SPDX-License-Identifier: Apache-2.0
import { release } from "../allocator/release.ts";
import type { Scene } from "./command.ts";
import { allOf, type Ledger, withLedger } from "./ledger.ts";
import type { Registry } from "./registry.ts";
import { readStackFile } from "./stack-file.ts";

/** Opens what the scene is about for `work` and closes it again. Throws what either cannot do, in one line. */
export async function withRegistry<T>(
  scene: Scene,
  mode: "read" | "write",
  work: (registry: Registry) => Promise<T>,
): Promise<T> {
  if (scene.cluster === undefined) {
    return await withLedger(scene, mode, (ledger) => work(registryOf(ledger, scene.dataDir)));
  }
  // What authenticates takes longer to load than the rest of berthctl takes to run.
  const { withCluster } = await import("./cluster.ts");
  return await withCluster(scene.io, scene.cluster, work);
}

function registryOf({ store, shelf, attachments }: Ledger, dataDir: string): Registry {
  return {
    place: "data",
    store,
    world: shelf,
    namespace: "default",
    /** Not everybody asks, and the file may be damaged. */
    get node() {
      return readStackFile(dataDir)?.node ?? "";
    },
    claims: () => allOf(store, "claim"),
    uses: attachments,
    giveBack: release,
  };
}
