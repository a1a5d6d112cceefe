// SPDX-License-Identifier: Apache-2.0
import { after, before, describe } from "node:test";
import { storeContract } from "../../allocator/store/contract/contract.ts";
import { SAMPLE_NAMESPACES } from "../../allocator/store/contract/samples.ts";
import { MANY } from "../../allocator/store/contract/subject.ts";
import { type KubernetesStoreDeps, openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import { hostDeps } from "../support/host-deps.ts";
import { isFull } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";

/** Pages as a replica asks for them; and smaller ones, which as many records take less time to fill. */
const { many, pageSize } = isFull ? { many: MANY, pageSize: 500 } : { many: 550, pageSize: 125 };

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the store on a real API server", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await openControlPlane();
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, SAMPLE_NAMESPACES);
    });
    after(() => plane?.close());

    const subject = (pass: NonNullable<KubernetesStoreDeps["pass"]>) => async () => {
      const open = () => {
        const connection = plane.connect();
        const store = openKubernetesStore({ connection, ...hostDeps(), pass, pageSize });
        return { connection, store };
      };
      const handles = [open()];
      const [first = open()] = handles;
      return {
        many,
        store: first.store,
        second: async () => {
          const handle = open();
          handles.push(handle);
          return handle.store;
        },
        dispose: async () => {
          await clear(plane);
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
