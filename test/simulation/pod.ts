// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { ASSIGNED_ADDRESSES } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";

/** A pod as its kubelet has it: it may run on when its object is gone. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly annotations: Labels;
  /** The addresses that it was admitted with; undefined when it was given none. */
  readonly assigned: readonly string[] | undefined;
  /** The interfaces beside the first that it was told addresses for. */
  readonly further: readonly string[];
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
    further: [...new Set((assigned ?? []).flatMap((reported) => reported.split("@")[1] ?? []))].filter(
      isFurther,
    ),
    tellsUid,
    terminating: false,
  };
}

function isFurther(name: string): boolean {
  return name !== FIRST_INTERFACE;
}

/** Of what it was told, the addresses of that interface; of one that names none, all. */
export function assignedOn({ assigned }: Pod, name: string): readonly string[] | undefined {
  return assigned?.flatMap((reported) => {
    const [address = "", on = name] = reported.split("@");
    return on === name ? [address] : [];
  });
}
