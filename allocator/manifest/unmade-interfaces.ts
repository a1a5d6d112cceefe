// SPDX-License-Identifier: Apache-2.0
// Interfaces that a pod asks addresses for and that none of its networks makes.

import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { isLink } from "../model/interface-macs.ts";
import { namesOf } from "../model/interfaces.ts";
import { readRequest } from "./annotations.ts";
import { NETWORK_ANNOTATIONS, NETWORKS, networkElements } from "./network-attachments.ts";

/** As containerd calls what its configuration files make, `max_conf_num` of them: no annotation says how many that are. */
const OF_THE_RUNTIME = /^eth\d+$/;
const MOST_NAMED = 8;

/** A warning, for its runtime may make them all the same. `fromRuntime`: so it does where no annotation names networks. */
export function unmadeInterfaces(annotations: Labels, fromRuntime: boolean): readonly string[] {
  const request = readRequest(annotations, { name: "", labels: {}, annotations: {} });
  if (isRefusal(request)) return [];
  const elements = NETWORK_ANNOTATIONS.flatMap((key) => networkElements(key, annotations[key]));
  if (fromRuntime && elements.length === 0) return [];
  const made = new Set(elements.map((element) => element.interface));
  const asked = namesOf({ ...request.interfaces, ...request.interfacePools });
  const unmade = asked.filter((name) => !isLink(name) && !OF_THE_RUNTIME.test(name) && !made.has(name));
  if (unmade.length === 0) return [];
  const names = [...made].slice(0, MOST_NAMED).join(", ");
  const has = made.size === 0 ? `the pod has no ${NETWORKS}` : `the pod's networks make ${names}`;
  return [
    `addresses are asked for on ${unmade.slice(0, MOST_NAMED).join(", ")}, and ${has}: they are kept and not used unless the runtime makes that interface by itself`,
  ];
}
