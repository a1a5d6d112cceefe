// SPDX-License-Identifier: Apache-2.0

interface Account {
  readonly title: string;
  /** What policies take away again, in words. */
  readonly narrowed: string;
  /** Right -> why. */
  readonly why: Readonly<Record<string, string>>;
}

const PODS_OF = "the workload that a claim is kept for, and whether it still needs the claim";

/** Why each role has what it has. */
export const REASONS: Readonly<Record<string, Account>> = {
  "berth-webhook": {
    title: "berth-webhook: webhook and controllers",
    narrowed:
      "No policy restricts this account, but for what it may write of Nodes (below). Whoever has its token can give addresses to anybody, take them from anybody, and read the pods of the whole cluster; they cannot change any pod, Secret or configuration.",
    why: {
      "ippools.berth.dev": "which addresses there are; the finalizer of a pool that is in use",
      "ipclaims.berth.dev": "claims are created, bound, changed and released",
      "ipreservations.berth.dev": "an address is taken by creating one",
      "ipblocks.berth.dev":
        "which pieces of a pool belong to nodes, so that no fixed address is given out of them",
      "ippools.berth.dev/status": "how many addresses are taken, and what is wrong with a pool",
      "ipclaims.berth.dev/status": "conditions of a claim",
      pods: "whether a claim's pod exists, and on which node; read again before anything is released",
      nodes: "whether a node is fenced or gone; the labels that pools select by",
      namespaces: "labels and defaults of the pod's namespace",
      services: "whether a pool that somebody makes has addresses of Services; listed then, never watched",
      "servicecidrs.networking.k8s.io": "the same: the networks that Services get their addresses from",
      "statefulsets.apps": PODS_OF,
      "deployments.apps": PODS_OF,
      "statefulsets.apps.kruise.io": `${PODS_OF}; only if OpenKruise is installed`,
      "clonesets.apps.kruise.io": `${PODS_OF}; only if OpenKruise is installed`,
      "jobs.batch":
        "whether a Job still wants the index that a claim is kept for; read one by one, never watched",
      "events.events.k8s.io":
        "events that people see with kubectl describe, in the namespace of their object",
      "subjectaccessreviews.authorization.k8s.io":
        "whether a pod's service account may use a pool, and what the user who asks may read, so that a refusal names no more than that",
      "mutatingwebhookconfigurations.admissionregistration.k8s.io berth":
        "a replica is ready once the API server trusts its certificate. Only where Berth is its own authority",
      "validatingwebhookconfigurations.admissionregistration.k8s.io berth": "the same",
      "leases.coordination.k8s.io": "a rule cannot name an object that does not exist yet",
      "leases.coordination.k8s.io berth-webhook": "which replica collects garbage",
      "secrets berth-webhook-tls":
        "the certificate that it serves, with its key. Only where Berth is its own authority",
    },
  },
  "berth-issuer": {
    title: "berth-issuer: creates certificates",
    narrowed:
      "Only where Berth is its own authority (`certificates.mode: self`). The policy `trust.berth.dev` allows it to change `caBundle` of the configurations, and no other field ([ADR 0013](adr/0013-who-writes-trust.md)).",
    why: {
      "mutatingwebhookconfigurations.admissionregistration.k8s.io berth":
        "whom the API server trusts: `caBundle`",
      "validatingwebhookconfigurations.admissionregistration.k8s.io berth": "the same",
      "secrets berth-webhook-ca": "the authority and its key, which no other account of Berth may read",
      "secrets berth-webhook-tls": "the certificate that the webhook serves",
      "events.events.k8s.io": "what happened to the certificates",
    },
  },
  "berth-agent": {
    title: "berth-agent: the agent of a node",
    narrowed:
      "The policy `agents.berth.dev` allows it to write only the status of claims that are bound to its own node, and of blocks that its node owns. It recognises the node by the name that the API server writes into the pod's token; a token without one can write nothing. The account reads pods, claims, blocks, nodes and namespaces of the whole cluster.",
    why: {
      pods: "those of its node, by a field selector that a role cannot ask for; any one, after an outage, to see how far the API server is",
      namespaces:
        "their labels: which pools are open to a pod that asks for nothing; followed once a pool has blocks",
      nodes: "labels and UID of its own node, by a field selector: the same",
      "ipclaims.berth.dev":
        "claims that are bound to its node, by selector; one claim if it is not in memory yet",
      "ipblocks.berth.dev":
        "which pieces of a pool its node owns, by selector; one block if its status was written meanwhile",
      "ipblocks.berth.dev/status":
        "how many addresses of a block are used, and that the node returns the block",
      "ippools.berth.dev": "prefix length, gateway, routes and DNS of an address",
      "ipclaims.berth.dev/status": "which sandbox has the addresses, and that it has ended",
    },
  },
  "berth-agent-nodes": {
    title: "berth-agent-nodes: also for the agents, if `cni.conflist` has `usePodCidr`",
    narrowed: "",
    why: { nodes: "the range of its own node" },
  },
  "berth-webhook-nodes": {
    title: "berth-webhook-nodes: also for the webhook, if `nodeCIDRs.families` is set",
    narrowed:
      "The policy `nodes.berth.dev` allows it to write only `spec.podCIDR` and `spec.podCIDRs` of a Node that has none, and the annotations that say the same to Cilium.",
    why: { nodes: "the CIDRs of the node's pods, once for each Node" },
  },
  "berth-webhook-cilium": {
    title: "berth-webhook-cilium: also for the webhook, if `cilium.ipam` is set",
    narrowed: "",
    why: {
      "ciliumnodes.cilium.io":
        "which addresses Cilium's nodes have and use, and those that they are given; made where nobody else makes them",
      "ciliumnodes.cilium.io/status":
        "which addresses an agent is asked to give back, and what is wrong with a node",
    },
  },
  "berth-webhook-owners": {
    title: "berth-webhook-owners: also for the webhook, if `webhook.checkOwners` is set",
    narrowed: "",
    why: {
      "replicasets.apps":
        "whether the owner is there for whose pod an entry of a list is held; read one by one, never watched",
    },
  },
  "berth-view": {
    title: "berth-view: added to view, edit and admin",
    narrowed: "",
    why: {
      "ippools.berth.dev": "which addresses there are (only with a cluster-wide binding)",
      "ipclaims.berth.dev": "who has which address, in the namespace",
      "ipreservations.berth.dev": "the same by address (only with a cluster-wide binding)",
      "ipblocks.berth.dev": "which pieces of a pool belong to nodes (only with a cluster-wide binding)",
    },
  },
  "berth-edit": {
    title: "berth-edit: added to edit and admin",
    narrowed:
      "The policy `claims.berth.dev` allows people to write only their part of a claim: request, retention, interface, and its deletion.",
    why: { "ipclaims.berth.dev": "to reserve addresses before a pod exists, and to release them" },
  },
  "berth-pool-admin": {
    title: "berth-pool-admin: for network administrators",
    narrowed: "",
    why: {
      "ippools.berth.dev":
        "people manage pools; `use` is for pods of pools with `authorization: ServiceAccount`",
      "ipclaims.berth.dev": "who has which address",
      "ipreservations.berth.dev": "the same by address",
      "ipblocks.berth.dev": "which pieces of a pool belong to nodes",
    },
  },
};
