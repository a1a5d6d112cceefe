// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before } from "node:test";
import type { Store } from "../../allocator/store/store.ts";
import { type Handle, openHandle } from "./handles.ts";
import { type Members, startMembers } from "./members.ts";
import { type Loss, OneWayProxy } from "./one-way-proxy.ts";

interface Opened {
  readonly members: Members;
  readonly proxy: OneWayProxy;
  readonly near: Handle;
  readonly far: Handle;
}

/** One etcd for the tests of a describe: near, through what loses answers or requests, and far, past it. */
export class LossyEtcd {
  #opened: Partial<Opened> = {};

  constructor() {
    before(async () => {
      const members = await startMembers({ count: 1 });
      this.#opened = { members };
      const proxy = await OneWayProxy.start(members.urls[0] ?? "");
      const [near, far] = [openHandle({ endpoints: [proxy.url] }), openHandle({ endpoints: members.urls })];
      this.#opened = { members, proxy, near, far };
    });
    after(async () => {
      const { members, proxy, near, far } = this.#opened;
      await near?.close();
      await far?.close();
      await proxy?.close();
      await members?.close();
    });
  }

  get near(): Store {
    return this.#opened.near?.store ?? assert.fail("it is not open yet");
  }

  get far(): Store {
    return this.#opened.far?.store ?? assert.fail("it is not open yet");
  }

  get members(): Members {
    return this.#opened.members ?? assert.fail("it is not open yet");
  }

  /** Does `write` with that loss, and `meanwhile` before the connection breaks and the loss is over. */
  async losing<T>(loss: Loss, write: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
    const proxy = this.#opened.proxy ?? assert.fail("it is not open yet");
    await this.near.get("pool", "warm"); // connected
    proxy.loses = loss;
    const writing = write();
    writing.catch(() => undefined); // awaited below
    try {
      await meanwhile();
    } finally {
      proxy.cut();
    }
    return await writing;
  }
}
