// SPDX-License-Identifier: Apache-2.0
import { ApiServer, type Kept } from "./api-server.ts";
import { eventually } from "./eventually.ts";
import type { Manifest } from "./review.ts";
import { detachAll, networkOf, Runtime, type Sandbox, sandboxOf } from "./runtime.ts";
import type { StackFolder } from "./stack-folder.ts";

/** The cluster around a stack, without interfaces: an API server, and a runtime that calls the IPAM plugin itself. */
export class PlainStack<S extends StackFolder & { remove(): Promise<void> }> {
  readonly stack: S;
  readonly api: ApiServer;
  readonly runtime: Runtime;

  constructor(stack: S, connections?: number) {
    this.stack = stack;
    this.api = new ApiServer(stack.endpoint, connections);
    this.runtime = new Runtime({ socket: stack.socket, network: networkOf() });
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

  /** Ends what a test left attached and says what `berthctl check` finds then. */
  async finish(): Promise<string> {
    await detachAll(this.stack);
    return await this.stack.findings();
  }

  async remove(): Promise<void> {
    this.api.close();
    await this.stack.remove();
  }
}

export interface Running {
  readonly kept: Kept;
  readonly sandbox: Sandbox;
  readonly addresses: readonly string[];
}
