// SPDX-License-Identifier: Apache-2.0
import { after, before, describe } from "node:test";
import { storeContract } from "../../allocator/store/contract/contract.ts";
import { MANY } from "../../allocator/store/contract/subject.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { isFull } from "../support/runs.ts";
import { openHandle } from "./handles.ts";
import { type Members, startMembers } from "./members.ts";

/** Pages as a host asks for them; and smaller ones, which as many records take less time to fill. */
const { many, pageSize } = isFull ? { many: MANY, pageSize: 500 } : { many: 550, pageSize: 125 };

if (havePartsOrSkip(["etcd"])) {
  describe("the store on an etcd of three members", () => {
    let members: Members;
    before(async () => {
      members = await startMembers();
    });
    after(() => members?.close());

    let subjects = 0;
    storeContract("etcd", async () => {
      // each in a part of its own, as two systems in one etcd would have it
      const prefix = `/berth-${subjects++}`;
      const open = () => openHandle({ endpoints: members.urls }, { prefix, pageSize });
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
          for (const handle of handles) await handle.close();
        },
      };
    });
  });
}
