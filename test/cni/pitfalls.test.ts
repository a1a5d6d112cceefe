// SPDX-License-Identifier: Apache-2.0
// What runtimes and peers send in the field, beyond the specification.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { ScriptedClaims } from "../../ipam-plugin/agent/testing/node-bench.ts";
import { Caller, type Said } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

const DUAL = { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "2001:db8::/64" }]] };

describe("pitfalls", () => {
  let claimSource: ScriptedClaims;
  let agent: TestingAgent;
  let caller: Caller;
  before(buildPlugin);
  beforeEach(async () => {
    claimSource = new ScriptedClaims();
    agent = await TestingAgent.start(claimSource);
    caller = new Caller(agent.socket);
  });
  afterEach(() => agent.remove());

  /** What an ADD with these gets, in a network of its own. */
  async function given(said: Said): Promise<string> {
    caller.network += "x";
    return (await caller.add(said)).join(" ");
  }

  it("C0050 CNI_ARGS in any order, twice, empty, with more = and ; than needed", async () => {
    const pod = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0;K8S_POD_UID=u1";
    const shopDb0 = "shop/db-0 u1";
    const args: readonly [args: string, pod: string][] = [
      [`IgnoreUnknown=1;${pod}`, shopDb0],
      ["K8S_POD_UID=u1;K8S_POD_NAME=db-0;IgnoreUnknown=true;K8S_POD_NAMESPACE=shop;FOO=bar", shopDb0],
      [`FOO=bar;${pod};IgnoreUnknown=True`, shopDb0],
      [`K8S_POD_NAME=old;K8S_POD_UID=old;${pod}`, shopDb0],
      [`IgnoreUnknown=0;A=b=c;B==;${pod};K8S_POD_INFRA_CONTAINER_ID=a=b;IgnoreUnknown=1`, shopDb0],
      [`;;${pod};IP=;GATEWAY=;`, shopDb0],
      ["K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0;K8S_POD_UID=", "shop/db-0 "],
      ["K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0", "shop/db-0 "],
      [`IgnoreUnknown=1;k8s_pod_name=other;${pod}`, shopDb0],
    ];
    for (const [text, expected] of args) {
      assert.equal(await given({ args: text }), "10.1.2.2/24", text);
      const { namespace, name, uid } = claimSource.asked.at(-1)?.pod ?? assert.fail(text);
      assert.equal(`${namespace}/${name} ${uid}`, expected, text);
    }
    assert.equal(claimSource.asked.length, args.length);
    assert.equal(
      await given({ ipam: DUAL, args: ";IP=10.1.2.9, 2001:db8::9;" }),
      "10.1.2.9/24 2001:db8::9/64",
    );
    assert.equal(await given({ args: "IP=10.1.2.8;IP=10.1.2.9" }), "10.1.2.9/24");
  });

  it("C0051 CNI_ARGS that are refused take nothing", async () => {
    const args: readonly [args: string, words: string][] = [
      ["FOO=bar;BAR=", '4 ARGS: unknown args ["FOO=bar" "BAR="]'],
      ["ip=10.1.2.9", '4 ARGS: unknown args ["ip=10.1.2.9"]'],
      ["IgnoreUnknown=1;FOO=bar;IgnoreUnknown=0", '4 ARGS: unknown args ["FOO=bar"]'],
      ["ignoreunknown=1", '4 ARGS: unknown args ["ignoreunknown=1"]'],
      ["IgnoreUnknown=1;FOO", '4 ARGS: invalid pair "FOO"'],
    ];
    for (const [text, words] of args) assert.equal(await caller.refused("ADD", { args: text }), words);
    assert.deepEqual(agent.held, []);
  });

  it("C0052 ids and names that are no file names are refused, and make no files", async () => {
    const ids = ["../evil", "/etc/passwd", "-rf", ".", "a/b", "a b", "a\nb", "ü"];
    const interfaces = [
      "..",
      ".",
      "a/b",
      "../eth0",
      "eth 0",
      "eth0\n",
      "eth:0",
      "sixteen-bytes-xx",
      "fünf-zehn-bytes",
    ];
    const bad: readonly Said[] = [
      ...ids.map((cid) => ({ cid, netns: "/nowhere" })),
      ...interfaces.map((ifname) => ({ ifname })),
    ];
    const files = (await readdir(agent.folder, { recursive: true })).sort();
    for (const said of bad) {
      for (const command of ["ADD", "CHECK", "DEL"]) {
        assert.match(await caller.refused(command, said), /^4 /, `${command} ${JSON.stringify(said)}`);
      }
    }
    for (const name of ["../evil", "a/b", " net"]) {
      const words = "7 invalid characters found in network name";
      assert.equal(await caller.refused("ADD", { conf: { name } }), words);
    }
    assert.deepEqual(agent.held, []);
    const dataDir = join(agent.folder, "data", "..", "dir");
    assert.deepEqual(await caller.add({ ipam: { subnet: "10.1.2.0/24", dataDir } }), ["10.1.2.2/24"]);
    assert.deepEqual((await readdir(agent.folder, { recursive: true })).sort(), files);
  });

  it("C0053 a DEL of such an id that had to wait harms nothing, and is laid aside", async () => {
    await caller.add();
    await agent.stop();
    await caller.del({ cid: "../../evil" });
    await caller.del({ ifname: "../eth0" });
    const spool = join(agent.folder, "run", "spool");
    for (const name of await readdir(spool)) assert.match(name, /^\d{20}-\d+-[0-9a-f-]{36}\.del$/);
    assert.deepEqual((await readdir(join(agent.folder, "run"))).sort(), ["agent.sock.journal", "spool"]);
    await agent.start();
    assert.deepEqual(agent.held, ["10.1.2.2"]);
    const left = await readdir(spool);
    assert.equal(left.length, 2);
    for (const name of left) assert.match(name, /\.del\.bad$/);
  });

  it("C0054 STATUS and GC come with the attachment's variables empty, or without them", async () => {
    await caller.add();
    const empty = { CNI_CONTAINERID: "", CNI_NETNS: "", CNI_IFNAME: "", CNI_ARGS: "" };
    const conf = { "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] };
    for (const env of [empty, { ...empty, CNI_CONTAINERID: "../x", CNI_IFNAME: "..", CNI_ARGS: "FOO" }]) {
      await caller.silently("STATUS", { env });
      await caller.silently("GC", { env, conf });
      assert.deepEqual(agent.held, ["10.1.2.2"]);
    }
    await caller.silently("GC", { env: empty, conf: { "cni.dev/valid-attachments": [] } });
    assert.deepEqual(agent.held, []);
    const words = "4 required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing";
    assert.equal(await caller.refused("ADD", { env: empty }), words);
  });

  it("C0055 one address in several notations is one, and is printed in its canonical one", async () => {
    const notations: readonly [requested: string, got: string][] = [
      ["::ffff:10.1.2.9", "10.1.2.9/24 2001:db8::2/64"],
      ["::FFFF:0a01:0209", "10.1.2.9/24 2001:db8::2/64"],
      ["2001:DB8::00AB", "10.1.2.2/24 2001:db8::ab/64"],
      ["2001:0db8:0000:0000:0000:0000:0000:00ab/128", "10.1.2.2/24 2001:db8::ab/64"],
      ["2001:db8::0.0.0.171", "10.1.2.2/24 2001:db8::ab/64"],
    ];
    for (const [text, expected] of notations) {
      assert.equal(await given({ ipam: DUAL, args: `IP=${text}` }), expected, text);
      const conf = { runtimeConfig: { ips: [text] } };
      assert.equal(await given({ ipam: DUAL, conf }), expected, text);
    }
    const held = agent.held;
    caller.network += "y";
    for (const text of ["10.1.2.010", "10.1.2", "0x0a010209", "2001:db8::1%eth0", "2001:db8:::1", "[::1]"]) {
      assert.match(await caller.refused("ADD", { ipam: DUAL, args: `IP=${text}` }), /^4 .*invalid IP/, text);
      const conf = { runtimeConfig: { ips: [text] } };
      assert.equal(await caller.refused("ADD", { ipam: DUAL, conf }), `7 invalid IP address ${text}`);
    }
    for (const text of ["0.0.0.0", "::", "::ffff:0.0.0.0"]) {
      assert.match(await caller.refused("ADD", { ipam: DUAL, args: `IP=${text}` }), /^101 /, text);
    }
    assert.deepEqual(agent.held, held);
  });

  it("C0056 subnets that begin with zeros, or end with ones, are subnets", async () => {
    const subnets: readonly [subnet: string, first: string][] = [
      ["0.0.0.0/24", "0.0.0.2/24"],
      ["255.255.255.0/24", "255.255.255.2/24"],
      ["::/64", "::2/64"],
      ["2001:DB8:0:0::/64", "2001:db8::2/64"],
      ["ffff:ffff:ffff:ffff::/64", "ffff:ffff:ffff:ffff::2/64"],
    ];
    for (const [subnet, first] of subnets) assert.equal(await given({ ipam: { subnet } }), first);
    assert.match(await caller.refused("ADD", { cid: "c2", ipam: { subnet: "10.01.2.0/24" } }), /^7 /);
  });

  it("C0057 keys of the configuration come in any letter case, and of several the last counts", async () => {
    const texts = [
      '{"CNIVersion":"1.1.0","Name":"NAME","IPAM":{"Type":"berth","SUBNET":"10.1.2.0/24"}}',
      '{"cniVersion":"9.9.9","name":"NAME","ipam":{"subnet":"x"},"cniversion":"1.1.0","Ipam":{"subnet":"10.1.2.0/24"}}',
      '{"name":"wrong","cniVersion":"1.1.0","name":"NAME","ipam":{"subnet":"x","subnet":"10.1.2.0/24"}}',
      '{"cniVersion":"1.1.0","name":"NAME","ipam":{"ranges":[[{"Subnet":"10.1.2.0/24"}]],"__proto__":{"subnet":"x"}}}',
      '{"cniVersion":"1.1.0","name":"wrong","namE":"NAME","ipam":{"subnet":"10.1.2.0/24"}}',
    ];
    for (const [i, text] of texts.entries()) {
      const stdin = text.replaceAll('"NAME"', `"net${i}"`);
      assert.deepEqual(await caller.add({ stdin }), ["10.1.2.2/24"], text);
      await caller.silently("CHECK", { conf: { name: `net${i}` } });
    }
    const conf = { RuntimeConfig: { IPs: ["10.1.2.9"] }, ARGS: { Cni: { Ips: ["2001:db8::9"] } } };
    assert.equal(await given({ ipam: DUAL, conf }), "10.1.2.9/24 2001:db8::9/64");
  });

  it("C0058 null is nothing, wherever a list or an object may stand", async () => {
    const ipam = {
      subnet: "10.1.2.0/24",
      ranges: null,
      routes: null,
      dns: null,
      addresses: null,
      pools: null,
    };
    const annotations = { "io.kubernetes.cri.pod-annotations": null };
    const nothings: readonly Said[] = [
      { ipam, conf: { prevResult: null, runtimeConfig: null, args: null, capabilities: null } },
      { ipam, conf: { runtimeConfig: { ips: null, ipRanges: null, ...annotations }, args: { cni: null } } },
      { ipam: { ...ipam, rangeStart: null, gateway: null, dataDir: null, resolvConf: null } },
    ];
    for (const said of nothings) assert.equal(await given(said), "10.1.2.2/24");
    assert.match(
      await caller.refused("ADD", { cid: "c2", ipam: { ranges: [null] } }),
      /^7 .*empty range set/,
    );
    assert.match(await caller.refused("ADD", { cid: "c2", ipam: null }), /^7 /);
  });

  it("C0059 numbers that cannot be told apart are refused where they count, and only there", async () => {
    const ipamWith = (metric: string) =>
      `{"subnet":"10.1.2.0/24","routes":[{"dst":"0.0.0.0/0","table":${metric}}]}`;
    const stdin = (name: string, ipam: string) =>
      `{"cniVersion":"1.1.0","name":"${name}","mtu":9007199254740993,"ipam":${ipam}}`;
    for (const metric of ["9007199254740993", "1e400", "1.5", "-9223372036854775809"]) {
      const words = await caller.refused("ADD", { stdin: stdin("net", ipamWith(metric)) });
      assert.equal(words, "6 json: cannot unmarshal number into field ipam.routes[0].table of type int");
    }
    assert.deepEqual(agent.held, []);
    for (const metric of ["0", "4294967295", "9007199254740991"]) {
      const { stdout } = await caller.call("ADD", { stdin: stdin(`n${metric}`, ipamWith(metric)) });
      assert.equal(JSON.parse(stdout).routes[0].table, Number(metric));
    }
  });
});
