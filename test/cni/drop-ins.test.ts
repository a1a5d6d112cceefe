// SPDX-License-Identifier: Apache-2.0
// Networks that were written for other IPAM plugins, and the plugin under their names: each row of the table (docs/drop-ins.md) from its
// documented example to the answer of an ADD.
import assert from "node:assert/strict";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Host, linuxHost } from "../../ipam-plugin/agent/journal/host.ts";
import { ALIASES, DROP_INS } from "../../ipam-plugin/cni/drop-ins.ts";
import { ApiServer } from "../support/api-server.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { run } from "../support/process.ts";
import { type Sandbox, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { Caller, errorOf } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { noClaims, TestingAgent } from "./testing-agent.ts";

interface Expected {
  /** What an ADD and STATUS say as long as there is no pool. */
  readonly refused: RegExp;
  readonly pools: readonly ReturnType<typeof pool>[];
  /** Of the pod. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** What the pod gets then: `address/length gateway`. */
  readonly given: readonly RegExp[];
}

const on = (type: string, ranges: readonly object[], more: object = {}) =>
  pool(`of-${type}`, [...ranges] as never, { networks: [`net-${type}`], cooldown: "0s", ...more });

const EXPECTED: Readonly<Record<string, Expected>> = {
  whereabouts: {
    refused:
      /^104 network net-whereabouts: no pool has what ipam\.range of type whereabouts means; make an IPPool with ranges: \[\{cidr: "192\.168\.2\.224\/28", from: "192\.168\.2\.225", to: "192\.168\.2\.238", exclude: \["192\.168\.2\.228\/30", "192\.168\.2\.236\/32"\]\}\], networks: \[net-whereabouts\] and blockSize: \{ipv4: 32\}$/,
    pools: [
      on("whereabouts", [{ cidr: "192.168.2.224/28", exclude: ["192.168.2.228/30", "192.168.2.236/32"] }]),
    ],
    given: [/^192\.168\.2\.2(2[5-7]|3[2-57-8])\/28 $/],
  },
  antrea: {
    refused: /^104 .*there is no pool "ipv4-pool-1"/,
    pools: [pool("ipv4-pool-1", ["10.2.0.0/24"]), pool("ipv6-pool-1", ["fd00:2::/64"])],
    given: [/^10\.2\.0\.\d+\/24 $/, /^fd00:2::[\da-f:]+\/64 $/],
  },
  spiderpool: {
    refused: /^104 .*there is no pool "default-v4-ippool"/,
    pools: [
      pool("default-v4-ippool", ["172.18.0.0/24"], { disabled: true, blockSize: { ipv4: 32 } }),
      pool("backup-v4-ippool", ["172.19.0.0/24"], { blockSize: { ipv4: 32 } }),
      pool("default-v6-ippool", ["fd00:18::/64"], { blockSize: { ipv6: 128 } }),
    ],
    given: [/^172\.19\.0\.\d+\/24 $/, /^fd00:18::[\da-f:]+\/64 $/],
  },
  "calico-ipam": {
    refused: /^104 .*there is no pool "default-ipv4-ippool"/,
    pools: [
      pool("default-ipv4-ippool", ["10.244.0.0/16"]),
      // the first CIDR that a pool lies in comes first
      on(
        "calico",
        ["20.0.4.0/24", "fd00:20::/64"].map((cidr) => ({ cidr })),
        { networks: undefined },
      ),
    ],
    given: [/^20\.0\.4\.\d+\/24 $/],
  },
  "kube-ipam": {
    refused:
      /^104 .*no pool has what ipam\.subnet of type kube-ipam means; make an IPPool with ranges: \[\{cidr: "10\.188\.0\.0\/16", from: "10\.188\.0\.10", to: "10\.188\.0\.200", gateway: "10\.188\.0\.1"\}\]/,
    pools: [
      // what pods ask for by kube-ipam.ip lies beside the range
      on(
        "kube-ipam",
        [{ cidr: "10.188.0.0/16", from: "10.188.0.10", to: "10.188.0.220", gateway: "10.188.0.1" }],
        { reserved: ["10.188.0.201-10.188.0.220"] },
      ),
    ],
    given: [/^10\.188\.0\.\d+\/16 10\.188\.0\.1$/],
  },
  "static-ipam": {
    refused: /^104 .*make an IPPool with ranges: \[\{cidr: "172\.31\.0\.0\/16", gateway: "172\.31\.0\.1"\}\]/,
    pools: [on("static-ipam", [{ cidr: "172.31.0.0/16", gateway: "172.31.0.1" }])],
    annotations: { "static-ipam.ipv4": "172.31.204.12" },
    given: [/^172\.31\.204\.12\/16 172\.31\.0\.1$/],
  },
};

describe("networks of other IPAM plugins", () => {
  let folder: string;
  let stack: ChildStack;
  let api: ApiServer;

  before(async () => {
    await buildPlugin();
    folder = await mkdtemp(join(tmpdir(), "berth-drop-ins-"));
    stack = await ChildStack.start({ manifests: [namespace("shop")] });
    api = new ApiServer(stack.endpoint);
    const berth = fileURLToPath(new URL("../../build/berth", import.meta.url));
    for (const type of ALIASES) await symlink(berth, join(folder, type));
  });
  after(async () => {
    api?.close();
    await stack?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  /** The plugin, called by the name that the configuration has for it. */
  async function call(verb: string, type: string, sandbox: Sandbox, more: object = {}) {
    const row = DROP_INS.find((one) => one.type === type);
    const ipam = { type, ...row?.example, ...more };
    const text = JSON.stringify({ cniVersion: "1.1.0", name: `net-${type}`, type: "macvlan", ipam });
    const { pod: of, containerID, netns } = sandbox;
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerID,
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: folder,
      CNI_ARGS: of ? `K8S_POD_NAMESPACE=${of.namespace};K8S_POD_NAME=${of.name};K8S_POD_UID=${of.uid}` : "",
      BERTH_SOCKET: stack.socket,
    };
    const { rc, stdout, stderr } = await run(join(folder, type), [], { env, stdin: { text } });
    return { rc: rc ?? -1, stdout, stderr };
  }

  const sandboxFor = async (name: string, annotations: Readonly<Record<string, string>> = {}) =>
    sandboxOf(await api.create(pod("shop", name, annotations)));

  async function refusedThenServed(type: string) {
    const { refused, pools, annotations, given } =
      EXPECTED[type] ?? assert.fail(`nothing is expected of ${type}`);
    const early = await sandboxFor(`early-${type}`);
    for (const verb of ["STATUS", "ADD"]) assert.match(errorOf(await call(verb, type, early)), refused, verb);
    for (const one of pools) await api.create(one);
    const sandbox = await sandboxFor(`of-${type}`, annotations);
    assert.equal((await call("STATUS", type, sandbox)).stdout, "");
    const { rc, stdout } = await call("ADD", type, sandbox);
    assert.equal(rc, 0, stdout);
    const ips: readonly { address: string; gateway?: string }[] = JSON.parse(stdout).ips;
    const has = ips.map(({ address, gateway = "" }) => `${address} ${gateway}`);
    assert.equal(has.length, given.length, has.join());
    for (const [i, one] of given.entries()) assert.match(has[i] ?? "", one);
    assert.equal((await call("DEL", type, sandbox)).rc, 0);
  }

  it("E0641 each documented example is refused with the pool to make, and served once that is there", async (t) => {
    for (const { type } of DROP_INS) await t.test(type, () => refusedThenServed(type));
  });

  it("E0642 a pod of static-ipam without the annotation is refused", async () => {
    const answer = await call("ADD", "static-ipam", await sandboxFor("plain"));
    assert.match(
      errorOf(answer),
      /^116 .*annotation static-ipam\.ipv4 names.*of pool "of-static-ipam" into it/,
    );
  });

  it("E0643 a pool that gives more, or another network, does not serve, and the refusal says why", async () => {
    const asked = async (more: object) => {
      const name = `asks-${Object.keys(more).join("-").toLowerCase().replaceAll("_", "-")}`;
      return errorOf(await call("ADD", "whereabouts", await sandboxFor(name), more));
    };
    assert.match(
      await asked({ range: "192.168.2.0/24" }),
      /pool "of-whereabouts" has the network 192\.168\.2\.224\/28/,
    );
    assert.match(
      await asked({ range_start: "192.168.2.226" }),
      /pool "of-whereabouts" has 192\.168\.2\.225 besides/,
    );
    assert.match(await asked({ gateway: "192.168.2.230" }), /pool "of-whereabouts" has no gateway/);
    assert.match(
      await asked({ ranges: [] }),
      /ipam\.ranges is no field of whereabouts's; did you mean range\?/,
    );
    assert.match(await asked({ configuration_path: "/etc/shadow" }), /ipam\.configuration_path is read from/);
  });

  it("E0644 called host-local or static it does what these do", async () => {
    const given = async (type: string, ipam: object) => {
      const { rc, stdout } = await call("ADD", type, await sandboxFor(`of-${type}`), ipam);
      assert.equal(rc, 0, stdout);
      return JSON.parse(stdout).ips;
    };
    assert.deepEqual(await given("host-local", { subnet: "10.1.2.0/24" }), [
      { address: "10.1.2.2/24", gateway: "10.1.2.1" },
    ]);
    assert.deepEqual(
      await given("static", { addresses: [{ address: "10.1.3.9/24", gateway: "10.1.3.1" }] }),
      [{ address: "10.1.3.9/24", gateway: "10.1.3.1" }],
    );
  });
});

describe("the flat file of whereabouts", () => {
  const files = new Map<string, string>();
  const absent = (path: string) => Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
  const host: Host = {
    ...linuxHost,
    read: async (path) => files.get(path) ?? Promise.reject(absent(path)),
  };
  let agent: TestingAgent;
  before(async () => {
    await buildPlugin();
    agent = await TestingAgent.start(noClaims, { host });
  });
  after(() => agent?.remove());

  it("E0648 is read at each ADD, the first of its two places alone", async () => {
    const caller = new Caller(agent.socket);
    const asked = (ipam: object = {}) => caller.refused("ADD", { ipam: { type: "whereabouts", ...ipam } });
    assert.match(await asked(), /^7 ipam\.range and ipam\.ipRanges are missing/);
    files.set(
      "/etc/cni/net.d/whereabouts.d/whereabouts.conf",
      '{"range": "10.1.0.0/24", "log_level": "debug"}',
    );
    assert.match(await asked(), /^104 .*\{cidr: "10\.1\.0\.0\/24"/);
    files.set("/etc/kubernetes/cni/net.d/whereabouts.d/whereabouts.conf", '{"range": "10.2.0.0/24"}');
    assert.match(await asked(), /^104 .*\{cidr: "10\.2\.0\.0\/24"/);
    assert.match(await asked({ range: "10.3.0.0/24" }), /^104 .*\{cidr: "10\.3\.0\.0\/24"/);
    files.set("/etc/cni/net.d/whereabouts.d/own.conf", "{");
    assert.match(
      await asked({ configuration_path: "/etc/cni/net.d/whereabouts.d/own.conf" }),
      /^6 \/etc\/cni\/net\.d\/whereabouts\.d\/own\.conf cannot be read/,
    );
  });
});
