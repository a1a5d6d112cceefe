// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseAddress } from "../../allocator/ip/address.ts";
import { type Call, encodeReply, type Reply } from "../../ipam-plugin/agent/rpc/frame.ts";
import { evilText, mutantOf } from "./values.ts";

const ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=u";

/** Configurations of every source of addresses, and what goes with CHECK and GC. */
const CONFIGS: readonly object[] = [
  {
    cniVersion: "1.0.0",
    name: "net",
    ipam: { type: "berth", subnet: "10.1.0.0/16", routes: [{ dst: "0.0.0.0/0" }] },
  },
  {
    cniVersion: "1.1.0",
    name: "net",
    ipam: {
      type: "berth",
      ranges: [
        [{ subnet: "10.2.0.0/24", rangeStart: "10.2.0.9", rangeEnd: "10.2.0.20", gateway: "10.2.0.1" }],
      ],
      dataDir: "/tmp/net",
      resolvConf: "/etc/resolv.conf",
      dns: { nameservers: ["10.2.0.2"] },
    },
    runtimeConfig: { ips: ["10.2.0.10"], ipRanges: [[{ subnet: "10.3.0.0/24" }]] },
    args: { cni: { ips: ["10.2.0.11"] } },
  },
  {
    cniVersion: "0.4.0",
    name: "net",
    ipam: { type: "berth", addresses: [{ address: "10.4.0.1/24", gateway: "10.4.0.254" }] },
  },
  {
    cniVersion: "1.1.0",
    name: "net",
    ipam: { type: "berth", pools: ["db"] },
    runtimeConfig: { "io.kubernetes.cri.pod-annotations": { "berth.dev/ips": "10.20.0.70" } },
    prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/16" }], interfaces: [{ name: "eth0" }] },
    "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }],
  },
  {
    cniVersion: "0.2.0",
    name: "net",
    ipam: { type: "berth", subnet: "fd00::/64" },
    prevResult: { ip4: { ip: "10.1.0.2/16" } },
  },
];

const VERBS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"];
/** More than the CNI binary lets through. */
const huge = fc.constantFrom("c".repeat(1_000_000), "../".repeat(300_000), "\u{1f6a2}".repeat(200_000));

/** Half of the values are good, so that not every call ends at the first check. */
function mostly(good: string, ...others: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(good) },
    ...others.map((arbitrary) => ({ weight: 1, arbitrary })),
  );
}

const pair = fc
  .tuple(
    fc.constantFrom("IP", "GATEWAY", "K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_UID", "IgnoreUnknown"),
    evilText,
  )
  .map(([key, value]) => `${key}=${value}`);
const args = fc.oneof(
  fc.constant(ARGS),
  fc.constant(""),
  fc.array(fc.oneof(pair, evilText), { maxLength: 5 }).map((pairs) => pairs.join(";")),
);
const containerID = fc.oneof(
  { weight: 80, arbitrary: fc.integer({ min: 0, max: 20 }).map((n) => `c${n}`) },
  { weight: 30, arbitrary: evilText },
  { weight: 1, arbitrary: huge },
);
const stdin = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...CONFIGS).map((config) => JSON.stringify(config)) },
  { weight: 5, arbitrary: mutantOf(...CONFIGS).map((config) => JSON.stringify(config) ?? "") },
  { weight: 1, arbitrary: evilText },
);

/** A call as no runtime makes it, or as one does. */
export const call: fc.Arbitrary<Omit<Call, "startNs">> = fc
  .record({
    CNI_COMMAND: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...VERBS) }, evilText),
    CNI_CONTAINERID: containerID,
    CNI_IFNAME: mostly("eth0", evilText),
    CNI_NETNS: mostly("/run/netns/a", evilText),
    CNI_ARGS: args,
    CNI_PATH: mostly("/opt/cni/bin", evilText),
    CNI_NETNS_OVERRIDE: mostly("", evilText),
    stdin,
  })
  .map(({ stdin: text, ...env }) => ({ env: new Map(Object.entries(env)), stdin: Buffer.from(text) }));

/** Runtimes take a failed DEL with these words for one that succeeded, and forget the sandbox. */
const FORGIVING = /not found|no such file or directory/i;

/** An answer that a runtime understands, whatever it asked. */
export function assertAnswer({ env }: Pick<Call, "env">, answer: Reply): void {
  const command = env.get("CNI_COMMAND") ?? "";
  encodeReply(answer); // throws for what the client would not take
  if (answer.exitStatus === 0) assertSuccess(command, answer);
  else assertError(command, answer);
}

function assertSuccess(command: string, { stdout }: Reply): void {
  if (command === "VERSION") {
    assert.equal(JSON.parse(stdout).cniVersion, "1.1.0");
  } else if (command === "ADD") {
    const result: { ips?: readonly { address: string }[]; ip4?: { ip: string }; ip6?: { ip: string } } =
      JSON.parse(stdout);
    const addresses = [...(result.ips ?? []).map(({ address }) => address), result.ip4?.ip, result.ip6?.ip];
    const given = addresses.filter((address) => address !== undefined);
    assert.ok(given.length > 0, stdout);
    for (const cidr of given) assert.match(cidr, /^[0-9a-f.:]+\/\d{1,3}$/);
    for (const cidr of given) assert.ok(parseAddress(cidr.split("/", 1)[0] ?? "") !== undefined, cidr);
  } else {
    assert.equal(stdout, "");
  }
}

function assertError(command: string, { exitStatus, stdout }: Reply): void {
  assert.ok(exitStatus === 1 || exitStatus === 75, `exit status ${exitStatus}`);
  const { code, msg, cniVersion }: { code: unknown; msg: unknown; cniVersion: unknown } = JSON.parse(stdout);
  assert.ok(Number.isInteger(code) && Number(code) > 0, stdout);
  assert.notEqual(code, 999, `it made Berth stumble: ${stdout.slice(0, 300)}`);
  assert.ok(typeof msg === "string" && msg.trim() !== "", stdout);
  assert.match(String(cniVersion), /^\d\.\d\.\d$/);
  if (command === "DEL") assert.doesNotMatch(stdout, FORGIVING);
}
