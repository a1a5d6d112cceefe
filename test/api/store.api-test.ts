// SPDX-License-Identifier: Apache-2.0
import { after, before, describe } from "node:test";
import { silent } from "../../allocator/ports.ts";
import { storeContract } from "../../allocator/store/contract.ts";
import { SAMPLE_NAMESPACES } from "../../allocator/store/contract-samples.ts";
import { type KubernetesStoreDeps, openKubernetesStore } from "../../allocator/store/kubernetes.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, installDefinitions, makeNamespaces } from "./crds.ts";
import { type ControlPlane, startControlPlane } from "./harness.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the store on a real API server", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await startControlPlane();
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, SAMPLE_NAMESPACES);
    });
    after(() => plane?.close());

    const subject = (pass: NonNullable<KubernetesStoreDeps["pass"]>) => async () => {
      const open = () => {
        const connection = plane.connect();
        const deps = { connection, clock: createClock(), random: createRandom(), log: silent, pass };
        return { connection, store: openKubernetesStore(deps) };
      };
      const handles = [open()];
      const [first = open()] = handles;
      return {
        store: first.store,
        second: async () => {
          const handle = open();
          handles.push(handle);
          return handle.store;
        },
        dispose: async () => {
          await clear(first.connection);
          for (const { store, connection } of handles) {
            await store.close();
            connection.close();
          }
        },
      };
    };
    storeContract("Kubernetes, passes by WatchList", subject("stream"));
    storeContract("Kubernetes, passes by pages", subject("pages"));
  });
}
