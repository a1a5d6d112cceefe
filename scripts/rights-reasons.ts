// SPDX-License-Identifier: Apache-2.0

interface Account {
  readonly title: string;
  /** What policies take away again, in words. */
  readonly narrowed: string;
  /** Right -> why. */
  readonly why: Readonly<Record<string, string>>;
}

const PODS_OF = "which workload a claim is kept for, and whether it wants it still";

/** Why each role has what it has. */
export const REASONS: Readonly<Record<string, Account>> = {
  "berth-webhook": {
    title: "berth-webhook: webhook and controllers",
    narrowed:
      "No policy stands before it: it is who the others keep out. With its token addresses can be given to anybody and taken from anybody; no pod, Secret or configuration can be changed, and pods of the whole cluster can be seen.",
    why: {
      "ippools.berth.dev": "which addresses there are; the finalizer of a pool that is in use",
      "ipclaims.berth.dev": "what this is about: claims are made, bound, changed and let go",
      "ipreservations.berth.dev": "making one is what takes an address",
      "ipblocks.berth.dev":
        "which pieces of a pool are a node's, so that no fixed address is given out of one",
      "ippools.berth.dev/status": "how many addresses are taken, and what is wrong with a pool",
      "ipclaims.berth.dev/status": "phase and conditions of a claim",
      pods: "whether a claim's pod lives, and on which node; read again before anything is let go",
      nodes: "whether a node is fenced or gone; the labels that pools select by",
      namespaces: "labels and defaults of the pod's namespace",
      "statefulsets.apps": PODS_OF,
      "deployments.apps": PODS_OF,
      "statefulsets.apps.kruise.io": `${PODS_OF}; only where OpenKruise is`,
      "clonesets.apps.kruise.io": `${PODS_OF}; only where OpenKruise is`,
      "jobs.batch":
        "whether a Job still wants the index that a claim is kept for; read one by one, never watched",
      "events.events.k8s.io": "what people see by kubectl describe, in the namespace of whatever it is about",
      "subjectaccessreviews.authorization.k8s.io": "whether a pod's service account may use a pool",
      "mutatingwebhookconfigurations.admissionregistration.k8s.io berth":
        "a replica is ready once the API server trusts its certificate. Only where Berth is its own authority",
      "validatingwebhookconfigurations.admissionregistration.k8s.io berth": "the same",
      "leases.coordination.k8s.io": "an object that is not there yet has no name that a rule could give",
      "leases.coordination.k8s.io berth-webhook": "which replica collects garbage",
      "secrets berth-webhook-tls":
        "the certificate that it serves, and its key. Only where Berth is its own authority",
    },
  },
  "berth-issuer": {
    title: "berth-issuer: what makes certificates",
    narrowed:
      "Only where Berth is its own authority (`certificates.mode: self`). The policy `trust.berth.dev` leaves it `caBundle` of the configurations, and no other field ([ADR 0013](adr/0013-who-writes-trust.md)).",
    why: {
      "mutatingwebhookconfigurations.admissionregistration.k8s.io berth":
        "whom the API server trusts: `caBundle`",
      "validatingwebhookconfigurations.admissionregistration.k8s.io berth": "the same",
      "secrets berth-webhook-ca": "the authority and its key, which nobody else of Berth's may read",
      "secrets berth-webhook-tls": "the certificate that the webhook serves",
      "events.events.k8s.io": "what became of the certificates",
    },
  },
  "berth-agent": {
    title: "berth-agent: the agent of a node",
    narrowed:
      "The policy `agents.berth.dev` leaves it the status of claims that are bound to its own node and of blocks that it owns, told by the node name that the API server writes into its pod's token; a token without one writes nothing. It reads pods, claims, blocks, nodes and namespaces of the whole cluster.",
    why: {
      pods: "those of its node, by a field selector that a role cannot ask for",
      namespaces: "their labels: which pools are open to a pod that asks for nothing",
      nodes: "the labels of its own, by a field selector: the same",
      "ipclaims.berth.dev": "what is bound to its node, by selector; one claim when memory has none yet",
      "ipblocks.berth.dev":
        "which pieces of a pool its node owns, by selector; one block when a status was written meanwhile",
      "ipblocks.berth.dev/status": "how many addresses of a block are used, and that it gives the block back",
      "ippools.berth.dev": "prefix length, gateway, routes and DNS of an address",
      "ipclaims.berth.dev/status": "which sandbox has the addresses, and that it has ended",
    },
  },
  "berth-agent-nodes": {
    title: "berth-agent-nodes: the agents too, where `cni.conflist` says `usePodCidr`",
    narrowed: "",
    why: { nodes: "the range of its own node" },
  },
  "berth-view": {
    title: "berth-view: added to view, edit and admin",
    narrowed: "",
    why: {
      "ippools.berth.dev": "which addresses there are (with a binding in the whole cluster alone)",
      "ipclaims.berth.dev": "who has which, in the namespace",
      "ipreservations.berth.dev": "the same by address (with a binding in the whole cluster alone)",
      "ipblocks.berth.dev": "which pieces of a pool are a node's (with a binding in the whole cluster alone)",
    },
  },
  "berth-edit": {
    title: "berth-edit: added to edit and admin",
    narrowed:
      "The policy `claims.berth.dev` leaves people what is theirs of a claim: request, retention, interface, its end.",
    why: { "ipclaims.berth.dev": "to reserve before a pod is there, and to release" },
  },
  "berth-pool-admin": {
    title: "berth-pool-admin: who runs the network",
    narrowed: "",
    why: {
      "ippools.berth.dev":
        "pools are people's; `use` is for pods of pools with `authorization: ServiceAccount`",
      "ipclaims.berth.dev": "who has which",
      "ipreservations.berth.dev": "the same by address",
      "ipblocks.berth.dev": "which pieces of a pool are a node's",
    },
  },
};
