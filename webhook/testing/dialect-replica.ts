// SPDX-License-Identifier: Apache-2.0
// A replica in a cluster that reads other systems' annotations, and the namespace of who writes them.
import type { Labels } from "../../allocator/base/ports.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { namespaceObject } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import type { World } from "../../test/support/world.ts";
import type { AdmissionContext } from "../admission/admission-context.ts";

export const NEVER = new AbortController().signal;
const OPTED_IN = { "berth.dev/admission": "enabled" };

export function replica(world: World): AdmissionContext {
  const { embedded: _, ...admission } = world.admission;
  return { ...admission, dialects: OWN_OF_EACH };
}

export async function namespace(world: World, annotations: Labels): Promise<void> {
  await send(world, "/validate/namespaces", namespaceObject("shop", annotations, OPTED_IN));
}
