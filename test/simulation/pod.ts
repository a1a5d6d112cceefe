// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { ASSIGNED_ADDRESSES } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";

/** A pod as its kubelet has it: it may run on when its object is gone. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly annotations: Labels;
  /** The addresses that it was admitted with; undefined when it was given none. */
  readonly assigned: readonly string[] | undefined;
  /** Its runtime says the UID in CNI_ARGS. */
  readonly tellsUid: boolean;
  /** The kubelet knows that it is to end, or has ended. */
  terminating: boolean;
}

/** Of pods whose runtime does not say their UIDs. */
export const SILENT_RUNTIME = "silent";

export function podOf({ metadata, spec }: KubeObject): Pod {
  const { namespace, name, uid, annotations } = metadata;
  const assigned = annotations[ASSIGNED_ADDRESSES]?.split(",");
  const tellsUid = spec.text("runtimeClassName") !== SILENT_RUNTIME;
  return {
    namespace,
    name,
    uid,
    node: spec.text("nodeName"),
    annotations,
    assigned,
    tellsUid,
    terminating: false,
  };
}
