// SPDX-License-Identifier: Apache-2.0
// A control plane that nobody asks anything costs a thirtieth of a processor, and five wait beside each other for most of a
// run: with these flags a quarter less. Not where it is measured how much one can do.

/** One that is alone has nobody to tell ten times a second that it leads. */
export const IDLE_ETCD: readonly string[] = ["--heartbeat-interval=200", "--election-timeout=1000"];

/** Kinds that Berth and its tests watch nowhere. They are served from etcd: each that is cached has a watch, and a timer each second. */
const UNWATCHED: Readonly<Record<string, readonly string[]>> = {
  "": ["endpoints", "limitranges", "persistentvolumeclaims", "persistentvolumes", "podtemplates"],
  "admissionregistration.k8s.io": ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
  autoscaling: ["horizontalpodautoscalers"],
  "certificates.k8s.io": ["certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"],
  "networking.k8s.io": ["ingresses", "ingressclasses", "networkpolicies"],
  "node.k8s.io": ["runtimeclasses"],
  "resource.k8s.io": [
    "deviceclasses",
    "devicetaintrules",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
  ],
  "storage.k8s.io": [
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
  ],
};

const names = Object.entries(UNWATCHED).flatMap(([group, plurals]) =>
  plurals.map((plural) => (group === "" ? plural : `${plural}.${group}`)),
);

export const IDLE_API_SERVER: readonly string[] = [
  `--watch-cache-sizes=${names.map((name) => `${name}#0`).join(",")}`,
];
