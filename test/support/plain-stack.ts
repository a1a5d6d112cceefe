// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { ApiServer, type Kept } from "./api-server.ts";
import { eventually } from "./eventually.ts";
import type { Manifest } from "./review.ts";
import { detachAll, networkOf, Runtime, type Sandbox, sandboxOf } from "./runtime.ts";
import type { StackFolder } from "./stack-folder.ts";

const NOT_STARTED = "the stack does not run yet";

/**
 * The cluster around a stack, without interfaces: an API server, and a runtime that calls the IPAM plugin itself. The tests of one
 * describe share it, and each must leave nothing that `berthctl check` finds.
 */
export class PlainStack<S extends StackFolder & { remove(): Promise<void> }> {
  #stack: S | undefined;
  #api: ApiServer | undefined;
  #runtime: Runtime | undefined;

  constructor(start: () => Promise<S>, connections?: number) {
    before(async () => {
      const stack = await start();
      this.#stack = stack;
      this.#api = new ApiServer(stack.endpoint, connections);
      this.#runtime = new Runtime({ socket: stack.socket, network: networkOf() });
    });
    afterEach(async () => {
      await detachAll(this.stack);
      assert.equal(await this.stack.findings(), "");
    });
    after(async () => {
      this.#api?.close();
      await this.#stack?.remove();
    });
  }

  get stack(): S {
    return this.#stack ?? assert.fail(NOT_STARTED);
  }

  get api(): ApiServer {
    return this.#api ?? assert.fail(NOT_STARTED);
  }

  get runtime(): Runtime {
    return this.#runtime ?? assert.fail(NOT_STARTED);
  }

  /** Creates a pod and starts its sandbox: what it is given, with prefix lengths. */
  async run(manifest: Manifest): Promise<Running> {
    const kept = await this.api.create(manifest);
    const sandbox = sandboxOf(kept);
    return { kept, sandbox, addresses: await this.runtime.attach(sandbox) };
  }

  /** The end of a pod: its sandbox goes, then its object. */
  async end({ kept, sandbox }: Running): Promise<void> {
    await this.runtime.detach(sandbox);
    await this.detached(kept);
    await this.api.delete(kept);
  }

  /** Waits until the claim of the pod knows that its sandbox is gone. */
  async detached({ metadata }: Kept): Promise<void> {
    const name = metadata.annotations?.["berth.dev/claim"] ?? metadata.name;
    await eventually(`claim ${name} is told`, async () => {
      const claim = await this.stack.claim(`${metadata.namespace}/${name}`);
      const still = claim?.status.attachment?.detached === false;
      return still ? undefined : true;
    });
  }
}

export interface Running {
  readonly kept: Kept;
  readonly sandbox: Sandbox;
  readonly addresses: readonly string[];
}
