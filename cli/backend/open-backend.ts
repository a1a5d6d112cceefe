// SPDX-License-Identifier: Apache-2.0
import { release } from "../../allocator/lifecycle/release.ts";
import type { CommandContext } from "../terminal/command.ts";
import type { Backend } from "./backend.ts";
import { allOf, type EmbeddedBackend, withEmbeddedBackend } from "./embedded-backend.ts";
import { readStackFile } from "./stack-file.ts";

/** Opens what the scene is about for `work` and closes it again. Throws what either cannot do, in one line. */
export async function withBackend<T>(
  scene: CommandContext,
  mode: "read" | "write",
  work: (registry: Backend) => Promise<T>,
): Promise<T> {
  if (scene.cluster === undefined) {
    return await withEmbeddedBackend(scene, mode, (backend) => work(registryOf(backend, scene.dataDir)));
  }
  // What authenticates takes longer to load than the rest of berthctl takes to run.
  const { withCluster } = await import("./cluster-backend.ts");
  return await withCluster(scene.io, scene.cluster, work);
}

function registryOf({ store, shelf, attachments }: EmbeddedBackend, dataDir: string): Backend {
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
