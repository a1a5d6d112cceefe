// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { join } from "node:path";
import { Client } from "../../kube/api/client.ts";
import { type KubeItem, PODS, type Resource } from "../../kube/api/resource.ts";
import { annotationsOf, type Json } from "../support/objects.ts";
import { run } from "../support/process.ts";
import { partOf } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import { type ControlPlane, FIELDS_UNSEEN } from "./plane.ts";

/** What people do with kubectl, and what it says to them. */
export function kubectlOn(plane: () => ControlPlane) {
  /** What `kubectl apply` says on standard error: warnings or why not. */
  async function apply(object: Json, ...flags: string[]): Promise<string> {
    const ended = await plane().kubectl(["apply", FIELDS_UNSEEN, ...flags, "-f", "-"], {
      stdin: JSON.stringify(object),
    });
    return ended.stderr.trim();
  }

  /** The same of `kubectl create`, which a pod without a name needs. */
  async function create(object: Json, ...flags: string[]): Promise<string> {
    const stdin = JSON.stringify(object);
    const ended = await plane().kubectl(["create", FIELDS_UNSEEN, ...flags, "-o", "name", "-f", "-"], {
      stdin,
    });
    return (ended.rc === 0 ? ended.stdout : ended.stderr).trim();
  }

  /** `kubectl diff`, which runs a program of the system. */
  async function difference(object: Json) {
    const { folder } = plane();
    const env = { HOME: folder, KUBECONFIG: join(folder, "admin.kubeconfig"), PATH: "/usr/bin:/bin" };
    const stdin = { text: JSON.stringify(object) };
    return await run(partOf("kubectl"), ["diff", "-f", "-"], { env, stdin });
  }

  async function get(resource: Resource, name: string, namespace = "shop"): Promise<KubeItem & Json> {
    const client = new Client(plane().connect(), resource);
    const item = await client.get(resource.namespaced ? { namespace, name } : { name });
    assert.ok(item, `${resource.plural} ${name} is not there`);
    return item as KubeItem & Json;
  }

  async function count(resource: Resource): Promise<number> {
    return (await listItems(new Client(plane().connect(), resource))).length;
  }

  const addressesOf = async (name: string, namespace = "shop") =>
    annotationsOf(await get(PODS, name, namespace))["berth.dev/addresses"];

  const kubectl: ControlPlane["kubectl"] = (...call) => plane().kubectl(...call);

  return { kubectl, apply, create, difference, get, count, addressesOf };
}
