// SPDX-License-Identifier: Apache-2.0
import type { FaultCode, RefusalCode } from "../allocator/base/errors.ts";
import type { CniCode } from "../ipam-plugin/cni/errors.ts";

/** What to do about each code, for whoever meets it. Closed: a code without a remedy does not compile. */
export const REMEDIES: Readonly<Record<RefusalCode | FaultCode, string>> = {
  REQUEST_INVALID:
    "Correct the annotation or field that the message names. `berthctl explain -f FILE` says what Berth makes of a file before it is applied.",
  ADDRESS_OUTSIDE:
    "Ask for an address of a pool: `berthctl get pools` (in a cluster `kubectl get ippools.berth.dev`) lists them. Or have the range added to a pool.",
  ADDRESS_EXCLUDED: "Ask for another address; the message names free ones nearby.",
  ADDRESS_TAKEN:
    "Ask for a free address, as the message proposes. Or, if nobody needs the holder's claim any more, do what the message says and then `berthctl release NAMESPACE/NAME`: a claim that is released while its pod or workload is there is made again. `berthctl who ADDRESS` says who has the address and why. An address that is cooling down is free when its pool's `cooldown` is over; the message says when that is.",
  POOL_UNKNOWN: "Correct the name (`berthctl get pools` lists the pools), or create the pool first.",
  POOL_DISABLED:
    'Name another pool, or set `disabled: false` on this one: `kubectl patch ippools.berth.dev NAME --type merge -p \'{"spec":{"disabled":false}}\'`. Addresses that it gave before stay where they are.',
  POOL_FORBIDDEN:
    "Name a pool that is open to the pod. Or label the namespace or pod as the pool's selectors want (`kubectl get ippools.berth.dev NAME -o yaml`), or ask the pool's administrator. An address of a pool that stands in a network's `ranges` or `addresses` is given by the pool alone: take it out of the network's configuration, or name the networks that the pool serves in its `spec.networks`.",
  NODE_MISMATCH:
    "Change the pod's `nodeName`, `nodeSelector` or required node affinity so that it may run where the pool's `nodeSelector` says, or name a pool of its own nodes. An address that is kept for the pod and is of the other nodes is given back by `berthctl release NAMESPACE/NAME`; then the pod gets one where it runs. If the words say that no node is of both pools, the pod's IPv4 and IPv6 addresses are routed to different nodes: name addresses of one zone.",
  POOL_EXHAUSTED:
    "Release claims that nobody needs: `berthctl get claims -A` lists them, `berthctl release NAMESPACE/NAME` gives one back. Or add a range to the pool. An address that was given back is free when the pool's `cooldown` is over.",
  BLOCKS_EXHAUSTED:
    "Wait: a controller gives the node another block as soon as one is free, and the pod is started again by itself. If it stays so, the pool is too small for its nodes, or its blocks are too large (docs/blocks.md): end pods, or add a range. `kubectl get ipblocks` says which node has how many blocks, and how many addresses of them are in use.",
  POOL_INVALID:
    "Correct the field that the message names, and apply the pool again (`kubectl explain ippools.spec --api-version=berth.dev/v1alpha1` describes each field).",
  POOL_OVERLAPS:
    "Change `cidr`, `from`, `to` or `exclude` of one of the two pools: an address belongs to one pool at most, and so does a block. If nodes still have blocks there, wait until they are gone (`kubectl get ipblocks`). A pool that stands over another one may always be disabled (`disabled: true`), and deleted once nothing of it is in use.",
  POOL_IN_USE:
    "Release the claims that the message names (`berthctl release NAMESPACE/NAME`), or wait until they are gone: list the addresses in `reserved` meanwhile, or, if the pool is to be deleted, set `disabled: true` on it.",
  FAMILY_UNAVAILABLE:
    "Ask for the other family in `berth.dev/families`, or have a range of the missing family added to the pool.",
  LIST_TOO_SHORT:
    "Add an entry to `berth.dev/ips` for every ordinal, or for every pod that may exist at once (replicas and maxSurge). Or lower those.",
  SET_EXHAUSTED:
    "Wait until an old pod has ended, with its sandbox; `berthctl who ADDRESS` says which pod has an entry. If it happens at every rollout: add entries to `berth.dev/ips` for maxSurge, or set maxSurge to 0.",
  LIMIT_REACHED:
    "Release a claim of the namespace (`berthctl get claims -n NAMESPACE`, then `berthctl release NAMESPACE/NAME`), or ask the pool's administrator for a higher `limits.perNamespace` ([limits.md](limits.md)). If the message says that addresses are held for pods that have not come: wait, they are free after 120 s. If it says that more cool after their release: wait for the pool's `spec.cooldown`, 30 s by default, and for the garbage collector's next pass.",
  CLAIM_CHANGED:
    'Delete the pod that has the claim: `kubectl delete pod NAME`. The next pod of that name gets what is asked for now. To keep the old address, take the change back. Where hosts share an etcd, ask for what the claim holds, or give it back (`berthctl release`). If the message says that the request was changed after berth was asked: another webhook did that, and will do it to the next pod, too; write the request into the template of the pod, or keep that webhook from changing it. If the message is about a MAC address: to delete the pod does not help; the runtime has to say that MAC address and the network\'s configuration has to declare `"capabilities": {"mac": true}` ([who sets it](cluster.md#mac-addresses)), or take the MAC address out of the pod\'s annotations.',
  CLAIM_RELEASING:
    "Try again in a second; controllers and kubelet do so by themselves. If it lasts for minutes: `berthctl explain claim/NAMESPACE/NAME` says what the release waits for. If the message names a finalizer, its addresses are free, and whoever set that has to take it away.",
  CLAIM_MISSING:
    "Delete the pod and create it again. If that does not help, the webhook was not asked: `kubectl get mutatingwebhookconfiguration berth -o yaml` says for which namespaces and pods it is.",
  CLAIM_BUSY:
    "Delete the other pod, or wait until its sandbox has ended. If its node is lost for good: switch it off, then `kubectl delete node NODE`, or taint it with `node.kubernetes.io/out-of-service` ([when an address moves](cluster.md#when-an-address-moves)).",
  CLAIM_REFUSED:
    "If the message names a quota: release claims of the namespace (`berthctl release NAMESPACE/NAME`), or raise the quota (`kubectl edit resourcequota -n NAMESPACE`). If it names a policy: ask whoever made the policy. Otherwise create the pod in a namespace that exists and is not being deleted.",
  OBJECT_INVALID:
    "If you wrote the object: correct what the message names. If the message is about a kind: the webhook configuration sends objects to the wrong path; install it from the chart.",
  STORE_UNAVAILABLE:
    "Check that the API server (`kubectl get --raw /readyz`; on one host, the disk: `df -h DIR`) can be reached, then try again. Nothing was changed, and running pods are not affected.",
  STORE_FULL:
    "Free space on the disk that the message names; `df -h DIR` says how much there is. Then try again.",
  STORE_READ_ONLY:
    "Make the file and its folder writable for the user that runs Berth (`ls -ld DIR` says whose it is). In a cluster: give its service accounts the chart's roles (`helm upgrade`).",
  WRITE_REFUSED:
    "The message quotes the API server: raise the quota (`kubectl describe resourcequota -n NAMESPACE` says how much is used), or change the policy, that it names.",
  STATE_CORRUPT:
    "Copy the store, then restore a backup ([recovery.md](recovery.md)); the message names the record. Do not start with an empty store: addresses in use would be given out again.",
  JOURNAL_MISMATCH:
    "Start the agent with the journal that served before (the old `agent.dataDir`), or drain and reboot the node. If the journal is lost: end the node's sandboxes, then `berthctl adopt` ([recovery.md](recovery.md)).",
  REVISION_CONFLICT:
    "Try again. If it keeps happening, something else writes the same record: `kubectl get ipclaim NAME -o yaml --show-managed-fields` says what.",
  NOT_READY:
    "If the message says that no stack runs: `berthctl up --detach` starts one. Otherwise the process has just started, or has lost its API server or etcd: kubelet and controllers try again by themselves, and it is over when the process is ready, within a minute as a rule. In a cluster `kubectl get pods -n berth-system` says which pod is not ready, and its log (`kubectl logs -n berth-system deployment/berth-webhook`, of an agent `kubectl -n berth-system-agents logs daemonset/berth-agent`) what it waits for.",
  TIMED_OUT:
    "Try again: whatever was begun is finished or taken back. If it keeps happening, look at the load of what the message names: the node (`uptime`), the API server (`kubectl get --raw /readyz?verbose`), or etcd (`etcdctl endpoint status`).",
  CONFIG_INVALID: "Correct the flag, variable or file that the message names, and start again.",
  CERTIFICATE_INVALID:
    "Provide a certificate and a key that belong together, in PEM, and that have not expired: `openssl x509 -in FILE -noout -subject -enddate`.",
  INTERNAL:
    "Report it ([SECURITY.md](../SECURITY.md) if addresses are affected), with the log lines before and after it.",
};

/** Codes of the CNI plugin that are no refusal's and no fault's: code -> when it comes, an example, and what to do. */
export const CNI_TEXTS: Readonly<
  Record<CniCode, { readonly when: string; readonly example: string; readonly remedy: string }>
> = {
  INCOMPATIBLE_VERSION: {
    when: "`cniVersion` of the network's configuration is none that Berth speaks, or the verb is not in it",
    example: "incompatible CNI versions",
    remedy: "write a `cniVersion` of [versions.md](versions.md) into the configuration",
  },
  INVALID_ENVIRONMENT: {
    when: "the runtime called the plugin wrongly: a variable is missing or malformed, or `CNI_ARGS` is",
    example: "required env variables [CNI_NETNS] missing",
    remedy: "when you call it by hand, set what the message names; otherwise report it to the runtime",
  },
  IO_FAILURE: {
    when: "a file cannot be read or written: `ipam.resolvConf`, the journal, the spool of a DEL",
    example: "ipam.resolvConf cannot be read: ENOENT: no such file or directory, open '/etc/none'",
    remedy: "make that file readable (`ls -l`), or room on its disk (`df -h`)",
  },
  DECODING_FAILURE: {
    when: "the configuration is no JSON, or a field has the wrong type",
    example: "error unmarshall network config: Unexpected end of JSON input",
    remedy: "correct it; `jq . FILE` says where it breaks off",
  },
  INVALID_CONFIG: {
    when: "the network's configuration says what cannot be served, or nothing",
    example:
      "ipam.addresses and ipam.pools stand side by side, and a pod gets of one of them alone; take one out",
    remedy: "change the file in `/etc/cni/net.d`, or the NetworkAttachmentDefinition, as the message says",
  },
  INVALID_NETNS: {
    when: "the sandbox's network namespace is the host's",
    example: "plugin's netns and netns from CNI_NETNS should not be the same",
    remedy: "start the container with a network of its own, without `--network host`",
  },
  TRY_AGAIN_LATER: {
    when: "the agent is not there, is starting, or has too many calls; with one of the codes above, that",
    example: "berth agent is not running (no socket at /run/berth/agent.sock)",
    remedy:
      "kubelet tries again by itself, other runtimes are asked again; if it lasts, start the agent (`berthctl up`, in a cluster `kubectl get pods -n berth-system-agents -o wide`)",
  },
  NOT_AVAILABLE: {
    when: "to a STATUS: the agent is not there or not ready",
    example: "berth agent is not running (no socket at /run/berth/agent.sock)",
    remedy: "the same; the node is NotReady until then ([troubleshooting.md](troubleshooting.md))",
  },
  LIMITED_CONNECTIVITY: {
    when: "to a STATUS: the journal cannot be written, so that no ADD succeeds and what runs goes on",
    example: "the journal cannot be written: database or disk is full",
    remedy: "make room on the disk of `/var/lib/berth`, or of the data folder (`df -h`)",
  },
  SANDBOX_DELETED: {
    when: "a DEL came while the ADD was under way",
    example: "the sandbox was deleted while this ADD was under way",
    remedy: "nothing: that container is gone; its pod's next sandbox gets an address",
  },
  NOT_ATTACHED: {
    when: "to a CHECK: Berth has given this container nothing",
    example: "Failed to find address added by container 3f0d9b6e1c5a for eth0 in network lan",
    remedy: "delete the container, or the pod; the next one has an address",
  },
  ATTACHMENT_DIFFERS: {
    when: "to a CHECK, or to an ADD that comes again: what Berth gave is not what the caller says",
    example: "10.20.0.51 of eth0 is missing in prevResult",
    remedy:
      "delete the container, or the pod; if the configuration was changed under it, the same for each of its containers",
  },
  INTERNAL: {
    when: "a defect of Berth, or of the host's setup (CONFIG_INVALID, CERTIFICATE_INVALID)",
    example: "something failed without a reason",
    remedy:
      "report it with the lines of the agent's log around it, unless the details name one of the codes above",
  },
};

/** What a person reads, word for word; a test produces each of them. */
export const EXAMPLES: Readonly<Record<RefusalCode, string>> = {
  REQUEST_INVALID:
    'annotation berth.dev/ips: entry 1, "10.20.0.70/24", has a prefix; write "10.20.0.70", for the pool says the prefix',
  ADDRESS_OUTSIDE: 'address 192.0.2.1 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199',
  ADDRESS_EXCLUDED:
    'address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
  ADDRESS_TAKEN:
    'address 10.20.0.70 in pool "db" is held by shop/mysql-0 (StatefulSet mysql, ordinal 0); free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or scale StatefulSet mysql down, and if its claim stays: berthctl release shop/mysql-0',
  POOL_UNKNOWN: 'there is no pool "dbs"; name one of "db"',
  POOL_DISABLED: 'pool "db" takes no new reservations; name another pool',
  POOL_FORBIDDEN: 'pool "db" is not open to namespace shop; ask its administrator',
  NODE_MISMATCH:
    'pool "beijing" is for nodes with topology.kubernetes.io/zone=beijing, where this pod cannot run by its own nodeName, nodeSelector or node affinity; name a pool of the pod\'s nodes, or change where the pod may run',
  POOL_EXHAUSTED:
    'no free IPv4 address in pool "tiny": 1 is held or cooling; add a range, or release claims that are not needed',
  BLOCKS_EXHAUSTED: `the IPv4 blocks that this node has of pool "db", whose blocks are /30, have no free address: 4 in use; a controller gives it a block as soon as one is free; nodes have 3 and 1 of the pool's blocks (kubectl get ipblocks says which)`,
  POOL_INVALID: "spec.ranges[0].cidr 10.20.0.7/24 has host bits; write 10.20.0.0/24",
  POOL_OVERLAPS:
    "pools web and db both contain 10.20.0.150-10.20.0.199; change from, to or cidr of one of them",
  POOL_IN_USE:
    "pool db is in use: it still holds 10.20.0.70 (shop/mysql-0); release them first, or set disabled: true and wait",
  FAMILY_UNAVAILABLE: 'no IPv6 range in pool "tiny"; ask for another family or add a pool that has it',
  LIST_TOO_SHORT:
    "the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2; add an entry or lower replicas",
  SET_EXHAUSTED:
    "the only entry of the list is in use: 10.20.0.70 (web-slot-0) is bound to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them",
  LIMIT_REACHED:
    'namespace shop holds 1 of the 1 address that pool "db" allows one namespace; release one, or ask for a higher limits.perNamespace',
  CLAIM_CHANGED:
    "claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.71; it changes when that pod is deleted and created again",
  CLAIM_RELEASING: "the addresses of claim shop/mysql-0 are being given back; try again in a moment",
  CLAIM_MISSING:
    "pod shop/licence asks for an address and no claim was made for it; Berth was not asked before; use: berthctl apply -f FILE",
  CLAIM_BUSY: "claim shop/mysql-0 is in use by pod mysql-0 on node node-a; delete the pod first",
  CLAIM_REFUSED:
    'the API server refuses to create ipclaims shop/licence with 403: ipclaims.berth.dev "licence" is forbidden: exceeded quota: claims, requested: count/ipclaims.berth.dev=1, used: count/ipclaims.berth.dev=5, limited: count/ipclaims.berth.dev=5; release claims of the namespace that nobody needs, or raise the quota',
  OBJECT_INVALID:
    "this webhook decides about IPPool, and the object is of kind IPBlock; install the webhook configurations from the chart",
};

/** The same of faults; a test produces each of them. */
export const FAULT_EXAMPLES: Readonly<Record<FaultCode, string>> = {
  STORE_UNAVAILABLE: "the API server refuses to list ipclaims with 503: apiserver is shutting down",
  STORE_FULL:
    "the API server refuses to create ipclaims shop/licence with 500: etcdserver: mvcc: database space exceeded",
  STORE_READ_ONLY:
    'the API server refuses to create ipclaims shop/licence with 403: ipclaims.berth.dev is forbidden: User "berth" cannot create resource "ipclaims" in API group "berth.dev" in the namespace "shop"; check roles',
  WRITE_REFUSED:
    'the API server refuses to create ipclaims shop/licence with 404: namespaces "shop" not found; create the namespace first',
  STATE_CORRUPT:
    "the stored claim shop/mysql-0 cannot be decoded: Unterminated string in JSON at position 11 (line 1 column 12); restore it from a backup",
  CERTIFICATE_INVALID: "the private key is not that of the certificate",
  JOURNAL_MISMATCH:
    'the journal /var/lib/berth/berth.db is not the one that has served this node since it booted: it does not know the sandboxes that are up, and would give their addresses away; start Berth on the journal that did, or reboot the node; if it is lost: "berthctl adopt", docs/recovery.md (mark: /run/berth/agent.sock.journal)',
  NOT_READY: "no berth stack runs on /var/lib/berth; start one with: berthctl up --data /var/lib/berth",
  REVISION_CONFLICT: "claim shop/mysql-0 kept changing while it was released",
  TIMED_OUT: "the API server refuses to create ipclaims shop/licence with 504: request timed out",
  CONFIG_INVALID: "get has no flag --ouput; did you mean --output?",
  INTERNAL: 'unexpected value "x"',
};
