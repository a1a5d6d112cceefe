// SPDX-License-Identifier: Apache-2.0
// Which of Kubernetes' tests are run, by what their names begin with, and which of those are left out, and why.

/** The areas in which a pod's address plays a part. */
export const FOCUS = [
  String.raw`\[sig-apps\] (StatefulSet|Deployment|DaemonSet|Daemon set|Job) .*\[Conformance\]`,
  String.raw`\[sig-network\] Networking Granular Checks: Pods .*\[Conformance\]`,
  String.raw`\[sig-node\] Pods .*\[Conformance\]`,
];

/** Each with its reason, which the documents show. */
export const LEFT_OUT: readonly { readonly skip: string; readonly why: string }[] = [
  { skip: String.raw`\[Serial\]`, why: "they drain or taint whole nodes" },
  { skip: String.raw`\[Slow\]|\[Disruptive\]|\[Flaky\]`, why: "too long, or they end what else runs" },
  { skip: "node-pod communication: udp", why: "it sends by `nc -u`, which Debian's busybox has not" },
];
