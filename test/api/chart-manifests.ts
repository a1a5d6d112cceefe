// SPDX-License-Identifier: Apache-2.0
// The chart with the values that people give it, and what the policies look at in its manifests.

import assert from "node:assert/strict";
import { SYSTEM_NAMES } from "../../allocator/model/dialect.ts";
import type { Manifest } from "./accounts.ts";
import type { Values } from "./chart-release.ts";

export const CONFIGURATIONS = {
  mutating: "MutatingWebhookConfiguration",
  validating: "ValidatingWebhookConfiguration",
};
export const CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const CONFLIST = {
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [
    { type: "bridge", bridge: "cni0", ipam: { type: "berth", ranges: [[{ subnet: "usePodCidr" }]] } },
  ],
};

/** As it is, with everything that can be switched on, and with what others make instead. */
export const VALUE_SETS: Readonly<Record<string, Values>> = {
  "no values": {},
  everything: {
    image: { repository: "registry.example/berth", tag: "9.9.9", digest: `sha256:${"a".repeat(64)}` },
    imagePullSecrets: [{ name: "registry" }],
    apiServer: { host: "192.0.2.1" },
    webhook: {
      ...{
        replicas: 3,
        hostNetwork: true,
        departSeconds: 60,
        clientCA: CERTIFICATE,
        metricsSecret: "berth-metrics",
        checkOwners: true,
        boundEvents: true,
        env: { NODE_OPTIONS: "--a" },
      },
      ...{ podLabels: { team: "net" }, podAnnotations: { note: "x" }, tolerations: [{ operator: "Exists" }] },
    },
    nodeCIDRs: { families: ["IPv4", "IPv6"] },
    cilium: { ipam: "multi-pool" },
    certificates: { mode: "cert-manager" },
    agent: {
      ...{ metricsOnNode: true, hostPID: true, capabilities: ["DAC_OVERRIDE"], maxUnavailable: "10%" },
      seLinuxOptions: { type: "spc_t" },
      etcdSecret: "etcd-client",
    },
    cni: { conflist: JSON.stringify(CONFLIST) },
    networkPolicy: { enabled: true, from: ["192.0.2.0/24"], to: ["192.0.2.0/24"] },
    monitoring: {
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      podMonitor: { enabled: true },
      alerts: { enabled: true },
      dashboard: { enabled: true, annotations: { grafana_folder: "Network" } },
    },
  },
  "what others make": {
    certificates: { mode: "secret", secret: { name: "own-certificate", caBundle: CERTIFICATE } },
    cni: { install: false },
    crds: { install: false },
    webhook: { clientCA: CERTIFICATE, priorityClassName: "" },
  },
};

/** With everything that says which requests Berth answers. */
export const NARROWED: Values = {
  webhook: {
    namespaceSelector: { matchExpressions: [{ key: "berth", operator: "Exists" }] },
    objectSelector: { matchLabels: { net: "berth" } },
    timeoutSeconds: 5,
    failurePolicy: "Ignore",
    foreignRequests: "refuse",
  },
  dialects: { calico: "none" },
};

/** No other system's words are read, and none told of. */
export const UNREAD: Values = {
  webhook: { foreignRequests: "ignore" },
  dialects: Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "none"])),
};

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly resources?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly securityContext?: {
    readonly readOnlyRootFilesystem?: boolean;
    readonly allowPrivilegeEscalation?: boolean;
    readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] };
  };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet?: { readonly path: string } } | undefined;
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly priorityClassName?: string;
  readonly hostNetwork?: boolean;
  readonly containers: readonly Container[];
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

export interface Template {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: PodSpec;
}

/** The pods of a Deployment or DaemonSet. */
export function templateOf({ spec }: Manifest): Template {
  return (spec as { template: Template }).template;
}

/** Every pod template, by the name of what makes its pods. */
export function templatesOf(manifests: readonly Manifest[]): ReadonlyMap<string, Template> {
  const makers = manifests.filter(
    ({ spec }) => typeof spec === "object" && spec !== null && "template" in spec,
  );
  return new Map(makers.map((maker) => [maker.metadata.name, templateOf(maker)]));
}

export function templateNamed(manifests: readonly Manifest[], name: string): Template {
  return templatesOf(manifests).get(name) ?? assert.fail(`no pods of ${name}`);
}

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** Every rule of every role. */
export function rulesOf(manifests: readonly Manifest[]): readonly Rule[] {
  return manifests.flatMap(({ rules }) => (rules as readonly Rule[] | undefined) ?? []);
}

/** Kinds that no API server has without their operators. */
export function isForeign({ apiVersion }: Manifest): boolean {
  return /^(monitoring\.coreos\.com|cert-manager\.io)\//.test(apiVersion);
}
