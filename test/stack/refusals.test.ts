// SPDX-License-Identifier: Apache-2.0
// What people read when they cannot have what they ask for, word by word as the API server passes it on.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { namespace, pod, pool } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import { ChildStack } from "../support/stack.ts";

const MANIFESTS = [
  namespace("shop", { labels: { team: "data" } }),
  namespace("lab"),
  pool(
    "db",
    [
      {
        cidr: "10.20.0.0/24",
        from: "10.20.0.50",
        to: "10.20.0.199",
        gateway: "10.20.0.100",
        exclude: ["10.20.0.60-10.20.0.69"],
      },
      "fd00:20::/64",
    ],
    { reserved: ["10.20.0.50-10.20.0.59"], namespaceSelector: { matchLabels: { team: "data" } } },
  ),
  pool("web", ["10.30.0.0/24"]),
  pool("lab", ["10.40.0.0/28"]),
];
const RANGES = '"db" 10.20.0.50-10.20.0.199, "lab" 10.40.0.1-10.40.0.14, "web" 10.30.0.1-10.30.0.254';

/** Annotations of a pod in namespace shop, or the one named -> the refusal. */
interface Refused {
  readonly why: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly namespace?: string;
  readonly reason: string;
  readonly message: string;
}

const REFUSED: readonly Refused[] = [
  {
    why: "taken, with the holder and free neighbours",
    annotations: { "berth.dev/ips": "10.20.0.71" },
    reason: "ADDRESS_TAKEN",
    message:
      'address 10.20.0.71 in pool "db" is held by shop/holder (Pod holder); free nearby: 10.20.0.70, 10.20.0.72, 10.20.0.73; or delete pod holder, and if its claim stays: berthctl release shop/holder',
  },
  {
    why: "taken, in IPv6",
    annotations: { "berth.dev/ips": "fd00:20::71" },
    reason: "ADDRESS_TAKEN",
    message:
      'address fd00:20::71 in pool "db" is held by shop/holder (Pod holder); free nearby: fd00:20::70, fd00:20::72, fd00:20::6f; or delete pod holder, and if its claim stays: berthctl release shop/holder',
  },
  {
    why: "free in one family and taken in the other",
    annotations: { "berth.dev/ips": "10.20.0.75,fd00:20::71" },
    reason: "ADDRESS_TAKEN",
    message:
      'address fd00:20::71 in pool "db" is held by shop/holder (Pod holder); free nearby: fd00:20::70, fd00:20::72, fd00:20::6f; or delete pod holder, and if its claim stays: berthctl release shop/holder',
  },
  {
    why: "excluded",
    annotations: { "cni.projectcalico.org/ipAddrs": '["10.20.0.69"]' },
    reason: "ADDRESS_EXCLUDED",
    message: 'address 10.20.0.69 is excluded from pool "db"; free nearby: 10.20.0.70, 10.20.0.72, 10.20.0.73',
  },
  {
    why: "the gateway",
    annotations: { "berth.dev/ips": "10.20.0.100" },
    reason: "ADDRESS_EXCLUDED",
    message:
      'address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
  },
  {
    why: "outside every pool",
    annotations: { "berth.dev/ips": "192.168.1.1" },
    reason: "ADDRESS_OUTSIDE",
    message: `address 192.168.1.1 is in no pool; name one of a pool: ${RANGES}`,
  },
  {
    why: "in the network of a pool and not in its range",
    annotations: { "berth.dev/ips": "10.20.0.10" },
    reason: "ADDRESS_OUTSIDE",
    message: `address 10.20.0.10 is in no pool; name one of a pool: ${RANGES}`,
  },
  {
    why: "of another pool than the one that is named",
    annotations: { "berth.dev/ips": "10.20.0.99", "berth.dev/pools": "web" },
    reason: "ADDRESS_OUTSIDE",
    message: 'address 10.20.0.99 belongs to pool "db", and the request names "web"; name one or the other',
  },
  {
    why: "of a pool for other namespaces",
    namespace: "lab",
    annotations: { "berth.dev/ips": "10.20.0.80" },
    reason: "POOL_FORBIDDEN",
    message: 'pool "db" is not open to namespace lab; open to it: "lab", "web"',
  },
  {
    why: "any of a pool for other namespaces",
    namespace: "lab",
    annotations: { "berth.dev/pools": "db" },
    reason: "POOL_FORBIDDEN",
    message: 'pool "db" is not open to namespace lab; open to it: "lab", "web"',
  },
  {
    why: "of a pool that does not exist",
    annotations: { "berth.dev/pools": "dp" },
    reason: "POOL_UNKNOWN",
    message: 'there is no pool "dp"; name one of "db", "lab", "web"',
  },
  {
    why: "of a family that the pool does not have",
    annotations: { "berth.dev/pools": "web", "berth.dev/families": "IPv6" },
    reason: "FAMILY_UNAVAILABLE",
    message: 'no IPv6 range in pool "web"; ask for another family or add a pool that has it',
  },
  {
    why: "two of one family",
    annotations: { "berth.dev/ips": "10.20.0.80,10.20.0.81" },
    reason: "REQUEST_INVALID",
    message:
      'annotation berth.dev/ips: "10.20.0.80,10.20.0.81" has two addresses of one family; a pod gets one of each, or with @eth0 behind each several of one, and the entries of several pods are set apart by ";"',
  },
  {
    why: "no address",
    annotations: { "cni.projectcalico.org/ipAddrs": "10.20.0.80" },
    reason: "REQUEST_INVALID",
    message:
      'annotation cni.projectcalico.org/ipAddrs: "10.20.0.80" is not a JSON list of strings, such as \'["10.20.0.51"]\'',
  },
  {
    why: "two systems' annotations that disagree",
    annotations: { "cni.projectcalico.org/ipAddrs": '["10.20.0.80"]', "berth.dev/ips": "10.20.0.81" },
    reason: "REQUEST_INVALID",
    message: "annotation cni.projectcalico.org/ipAddrs: it disagrees with berth.dev/ips; keep one of the two",
  },
];

describe("refusals", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  it("E0102 what cannot be had is refused at admission, in words that say what to do", async () => {
    await site.api.create(pod("shop", "holder", { "berth.dev/ips": "10.20.0.71,fd00:20::71" }));
    const before = await site.stack.dump();
    for (const { why, annotations, namespace: ns = "shop", reason, message } of REFUSED) {
      const outcome = await site.api.write(pod(ns, "asker", annotations));
      assert.deepEqual(outcome, { kind: "refused", reason, message }, why);
    }
    assert.equal(await site.stack.dump(), before, "a refusal keeps nothing");
  });
});
