// SPDX-License-Identifier: Apache-2.0
// What an API server says, request by request, that Berth's accounts asked of it; and what their roles allow.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Account, manifestsOf } from "./accounts.ts";
import type { ControlPlane } from "./plane.ts";

const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users:
      - system:serviceaccount:berth-system:berth-webhook
      - system:serviceaccount:berth-system:berth-issuer
      - system:serviceaccount:berth-system:berth-agent
  - level: None
`;

export interface Audited {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
  };
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
}

/** Flags of an API server that keeps such a log in the file. */
export function auditFlags(folder: string, file: string): readonly string[] {
  const policy = join(folder, "audit-policy.yaml");
  writeFileSync(policy, POLICY);
  return [
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${file}`,
    "--audit-log-mode=blocking",
    // never reached, 0 being 100 to some versions: a test has its part of the one file by where that begins
    "--audit-log-maxsize=100000",
  ];
}

/** The audit log of a control plane from now on: somebody else may have had it before. */
export class AuditLog {
  readonly #file: string;
  readonly #from: number;

  constructor(plane: ControlPlane) {
    this.#file = plane.auditLog;
    this.#from = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
  }

  requests(): readonly Audited[] {
    const text = readFileSync(this.#file).subarray(this.#from).toString("utf8");
    // the last line is being written, or empty
    const lines = text.split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Audited);
  }

  /** `patch ipclaims.berth.dev/status`: what the account has made use of. */
  usedBy(account: Account): ReadonlySet<string> {
    const own = this.requests().filter(({ user }) => user.username.endsWith(`:${account}`));
    return new Set(
      own.map(({ verb, objectRef = {} }) => {
        const { resource = "", subresource, apiGroup } = objectRef;
        return `${verb} ${named(subresource === undefined ? resource : `${resource}/${subresource}`, apiGroup)}`;
      }),
    );
  }
}

/** Of a role. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Binding {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

/** What the roles that the account is bound to allow, whatever they are called, in the same form. */
export function rightsOf(account: Account, manifests = manifestsOf("rbac")): readonly string[] {
  const bindings = manifests.filter(({ kind }) => kind.endsWith("Binding")) as unknown as readonly Binding[];
  const bound = bindings.filter(({ subjects }) => subjects.some(({ name }) => name === account));
  const roles = manifests.filter(({ kind, metadata }) =>
    bound.some(({ roleRef }) => roleRef.kind === kind && roleRef.name === metadata.name),
  );
  const rules = roles.flatMap((role) => role["rules"] as readonly Rule[]);
  const rights = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${named(resource, group)}`)),
    ),
  );
  return [...new Set(rights)];
}

function named(resource: string, group = ""): string {
  const [plural = "", subresource] = resource.split("/");
  const whole = group === "" ? plural : `${plural}.${group}`;
  return subresource === undefined ? whole : `${whole}/${subresource}`;
}

/** What certificates of Berth's own are kept by. */
export const CERTIFICATES = [
  "mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "validatingwebhookconfigurations.admissionregistration.k8s.io",
  "secrets",
];

/** What pools with blocks need besides: access-blocks.api-test.ts has the life that uses these. */
export const BLOCK_RIGHTS = {
  "berth-webhook": ["create", "patch", "delete"].map((verb) => `${verb} ipblocks.berth.dev`),
  "berth-agent": [
    ...["namespaces", "nodes", "ipblocks.berth.dev"].map((kind) => `watch ${kind}`),
    "patch ipblocks.berth.dev/status",
  ],
} as const satisfies Partial<Record<Account, readonly string[]>>;

/**
 * Rights that a life of pods and pools does not need, or not always, and what they are for. access-seldom.api-test.ts has what needs them, but for
 * those of blocks above.
 */
export const UNUSED: Readonly<Record<Account, readonly string[]>> = {
  "berth-webhook": [
    // the pages of a full pass, where the API server does not stream one
    "list deployments.apps",
    "list ipclaims.berth.dev",
    "list ippools.berth.dev",
    "list namespaces",
    "list nodes",
    "list pods",
    "list statefulsets.apps",
    // what the watches have not told of yet, and events that come again
    "get deployments.apps",
    "get namespaces",
    "get nodes",
    "patch events.events.k8s.io",
    // where OpenKruise is installed
    ...["get", "list", "watch"].map((verb) => `${verb} clonesets.apps.kruise.io`),
    ...["get", "list", "watch"].map((verb) => `${verb} statefulsets.apps.kruise.io`),
    ...BLOCK_RIGHTS["berth-webhook"],
    ...["get", "list"].map((verb) => `${verb} ipblocks.berth.dev`),
    // certificates come from a folder there; issuer.api-test.ts has the life that uses these
    ...["list", "watch"].flatMap((verb) => CERTIFICATES.map((resource) => `${verb} ${resource}`)),
  ],
  "berth-issuer": [
    // the pages of a full pass, where the API server does not stream one, and events that come again
    ...CERTIFICATES.map((resource) => `list ${resource}`),
    "patch events.events.k8s.io",
  ],
  // a claim is read when a status was written by somebody else meanwhile, or an ADD goes by more than memory
  "berth-agent": [
    ...["get ipclaims.berth.dev", "list ipclaims.berth.dev", "list ippools.berth.dev", "list pods"],
    ...BLOCK_RIGHTS["berth-agent"],
    ...["list namespaces", "list nodes", "get ipblocks.berth.dev", "list ipblocks.berth.dev"],
  ],
};
