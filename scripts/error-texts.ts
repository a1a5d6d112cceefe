// SPDX-License-Identifier: Apache-2.0
import type { FaultCode, RefusalCode } from "../allocator/base/errors.ts";

/** What to do about each code, for whoever meets it. Closed: a code without a remedy does not compile. */
export const REMEDIES: Readonly<Record<RefusalCode | FaultCode, string>> = {
  REQUEST_INVALID:
    "Correct the annotation or field that the message names. `berthctl explain -f FILE` says what Berth makes of a file before it is applied.",
  ADDRESS_OUTSIDE:
    "Ask for an address of a pool (`berthctl get pools`), name the pool that has it, or add a range to a pool.",
  ADDRESS_EXCLUDED: "Ask for another address; the message names free ones nearby.",
  ADDRESS_TAKEN:
    "Take a free address nearby, as the message proposes, or release the holder's claim if it is not needed any more. `berthctl who ADDRESS` tells who has it and why. A cooling address is free once its pool's cooldown is over.",
  POOL_UNKNOWN: "Correct the name, or create the pool first. `berthctl get pools` lists them.",
  POOL_DISABLED:
    "Name another pool, or take `disabled: true` off the pool. What it gave before stays where it is.",
  POOL_FORBIDDEN:
    "Name a pool that is open to the pod, label the namespace or the pod as the pool's selectors want, or ask the pool's administrator.",
  POOL_EXHAUSTED:
    "Add a range to the pool, or find claims that nobody needs (`berthctl get claims -A`) and release them. Given-back addresses are free after the cooldown.",
  POOL_INVALID: "Correct the field that the message names.",
  POOL_OVERLAPS: "Change `cidr`, `from`, `to` or `exclude` of one of the two pools.",
  POOL_IN_USE:
    "Release the claims that the message names, or set `disabled: true` and wait until they are gone.",
  FAMILY_UNAVAILABLE: "Ask for another family, or add a range of it to the pool.",
  LIST_TOO_SHORT:
    "Add entries until there is one for every ordinal, or for every pod that may live at once; or lower replicas or maxSurge.",
  SET_EXHAUSTED:
    "Wait until an old pod and its sandbox are gone, or add entries for the replicas and maxSurge.",
  LIMIT_REACHED:
    "Release a claim of the namespace, or ask whoever runs the pool for a higher `limits.perNamespace`: a pool that says none leaves a tenth of its addresses to other namespaces, and one that names one namespace in its `namespaceSelector`, or as many addresses as it has, leaves none. If it is what is held for pods that have not come: try again, it is let go after 120 s.",
  CLAIM_CHANGED:
    "Delete the pod that has the claim: the next one of its name gets what is asked for now. To keep the old addresses, take the change back.",
  CLAIM_RELEASING: "Try again; it takes a moment. Controllers do so by themselves.",
  CLAIM_MISSING:
    "Delete the pod and create it again, through the webhook. If that does not help, look whether the webhook is called for its namespace.",
  CLAIM_BUSY:
    "Wait until the other pod's sandbox is gone. If its node is lost for good, delete the Node or taint it out-of-service.",
  CLAIM_REFUSED:
    "If it is a quota: release claims of the namespace that nobody needs, or raise it. If it is a policy: ask whoever made it. Otherwise create the pod in a namespace that is there and not being deleted.",
  OBJECT_INVALID: "Send the object to the webhook's route for its kind, with a name and a namespace.",
  STORE_UNAVAILABLE:
    "See whether the store runs and can be reached. Nothing was decided; ask again. Pods that run are not touched.",
  STORE_FULL: "Make room on the disk under the store.",
  STORE_READ_ONLY:
    "Make the file and its folder writable for the user that Berth runs as; in a cluster, give its service accounts the roles of the chart.",
  WRITE_REFUSED: "The message has the API server's own words: raise the quota, or change the policy.",
  STATE_CORRUPT:
    "Keep a copy of the store and put a backup in its place; the message names the record. Do not start over with an empty store: addresses in use would be given out again.",
  JOURNAL_MISMATCH:
    "Start the agent on the journal that has served (`agent.dataDir` as it was), or drain and reboot the node. If that journal is lost: end the node's sandboxes, then `berthctl adopt` (see recovery.md).",
  REVISION_CONFLICT: "Try again. If it comes again and again, two writers fight over the record: look who.",
  NOT_READY: "Wait until the process has loaded its state; its readiness says when.",
  TIMED_OUT: "Try again. If it stays, look at the load and at the store.",
  CONFIG_INVALID: "Correct the flag, variable or file that the message names.",
  CERTIFICATE_INVALID: "Give a certificate and key that belong together, in PEM, and that are in force.",
  INTERNAL: "Report it, with the lines of the log around it.",
};

/** What a person reads, word for word; a test produces each of them. */
export const EXAMPLES: Readonly<Record<RefusalCode, string>> = {
  REQUEST_INVALID:
    'annotation berth.dev/ips: entry 1, "10.20.0.70/24", has a prefix; write "10.20.0.70", for the pool says the prefix',
  ADDRESS_OUTSIDE: 'address 192.0.2.1 is in no pool; pools have "db" 10.20.0.50-10.20.0.199',
  ADDRESS_EXCLUDED:
    'address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
  ADDRESS_TAKEN:
    'address 10.20.0.70 in pool "db" is held by shop/mysql-0 (StatefulSet mysql, ordinal 0); free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or release it with: berthctl release shop/mysql-0',
  POOL_UNKNOWN: 'there is no pool "dbs"; there are "db"',
  POOL_DISABLED: 'pool "db" takes no new reservations; name another pool',
  POOL_FORBIDDEN: 'pool "db" is not open to namespace shop',
  POOL_EXHAUSTED:
    'no free IPv4 address in pool "tiny": 1 are held or cooling; add a range, or release claims that are not needed',
  POOL_INVALID: "spec.ranges[0].cidr 10.20.0.7/24 has host bits; write 10.20.0.0/24",
  POOL_OVERLAPS:
    "pools web and db both contain 10.20.0.150-10.20.0.199; change from, to or cidr of one of them",
  POOL_IN_USE:
    "pool db is in use: it still holds 10.20.0.70 (shop/mysql-0); release them first, or set disabled: true and wait",
  FAMILY_UNAVAILABLE: 'no IPv6 range in pool "tiny"; ask for another family or add a pool that has it',
  LIST_TOO_SHORT:
    "the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2; add an entry or lower replicas",
  SET_EXHAUSTED:
    "all 1 entries of the set are in use: 10.20.0.70 (web-slot-0) is bound to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them",
  LIMIT_REACHED:
    'namespace shop holds 1 addresses of pool "db", which allows 1; release one or ask for a higher limit',
  CLAIM_CHANGED:
    "claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.71; it changes when that pod is deleted and created again",
  CLAIM_RELEASING: "the addresses of claim shop/mysql-0 are being given back; try again in a moment",
  CLAIM_MISSING:
    "pod shop/licence asks for an address and no claim was made for it; send it through /mutate/pods first",
  CLAIM_BUSY: "claim shop/mysql-0 is in use by pod mysql-0 on node node-a; delete the pod first",
  CLAIM_REFUSED:
    'the API server refuses to create ipclaims shop/licence with 403: ipclaims.berth.dev "licence" is forbidden: exceeded quota: claims, requested: count/ipclaims.berth.dev=1, used: count/ipclaims.berth.dev=5, limited: count/ipclaims.berth.dev=5; release claims of the namespace that nobody needs, or raise the quota',
  OBJECT_INVALID:
    "this webhook decides about StatefulSet, Deployment, CloneSet, DaemonSet, ReplicaSet, ReplicationController, Rollout, VirtualMachine, and the object is a CronJob",
};
