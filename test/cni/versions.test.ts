// SPDX-License-Identifier: Apache-2.0
// The life of an attachment from node-local ranges, in every version of the specification.
import assert from "node:assert/strict";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { Caller } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

const SUBNET = "10.1.2.0/24";
const ROUTES = [
  { dst: "0.0.0.0/0", mtu: 1400 },
  { dst: "2001:db8::/32", gw: "fd00:1::ff" },
];
const ONE_FAMILY = { subnet: SUBNET, routes: [{ dst: "0.0.0.0/0", mtu: 1400 }] };
const BOTH_FAMILIES = { ranges: [[{ subnet: SUBNET }], [{ subnet: "fd00:1::/64" }]], routes: ROUTES };
const TWO_OF_ONE_FAMILY = { ranges: [[{ subnet: SUBNET }], [{ subnet: "10.1.3.0/24" }]] };

/** What results look like, but for their `cniVersion`, and what else a version has. */
interface Form {
  readonly oneFamily: object;
  readonly bothFamilies: object;
  /** Absent: there is no room for a second address of one family. */
  readonly twoOfOneFamily?: object;
  /** Names of the commands that it has beyond ADD and DEL. */
  readonly commands: readonly string[];
}

/** 0.1.0 and 0.2.0 */
const BY_FAMILY: Form = {
  oneFamily: {
    ip4: { ip: "10.1.2.2/24", gateway: "10.1.2.1", routes: [{ dst: "0.0.0.0/0" }] },
    dns: {},
  },
  bothFamilies: {
    ip4: { ip: "10.1.2.2/24", gateway: "10.1.2.1", routes: [{ dst: "0.0.0.0/0" }] },
    ip6: {
      ip: "fd00:1::2/64",
      gateway: "fd00:1::1",
      routes: [{ dst: "2001:db8::/32", gw: "fd00:1::ff" }],
    },
    dns: {},
  },
  commands: [],
};

/** 0.3.0 to 0.4.0 */
const NUMBERED: Form = {
  oneFamily: {
    ips: [{ version: "4", address: "10.1.2.2/24", gateway: "10.1.2.1" }],
    routes: [{ dst: "0.0.0.0/0" }],
    dns: {},
  },
  bothFamilies: {
    ips: [
      { version: "4", address: "10.1.2.2/24", gateway: "10.1.2.1" },
      { version: "6", address: "fd00:1::2/64", gateway: "fd00:1::1" },
    ],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "2001:db8::/32", gw: "fd00:1::ff" }],
    dns: {},
  },
  twoOfOneFamily: {
    ips: [
      { version: "4", address: "10.1.2.2/24", gateway: "10.1.2.1" },
      { version: "4", address: "10.1.3.2/24", gateway: "10.1.3.1" },
    ],
    dns: {},
  },
  commands: [],
};

/** 1.0.0 */
const LISTED: Form = {
  oneFamily: {
    ips: [{ address: "10.1.2.2/24", gateway: "10.1.2.1" }],
    routes: [{ dst: "0.0.0.0/0" }],
    dns: {},
  },
  bothFamilies: {
    ips: [
      { address: "10.1.2.2/24", gateway: "10.1.2.1" },
      { address: "fd00:1::2/64", gateway: "fd00:1::1" },
    ],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "2001:db8::/32", gw: "fd00:1::ff" }],
    dns: {},
  },
  twoOfOneFamily: {
    ips: [
      { address: "10.1.2.2/24", gateway: "10.1.2.1" },
      { address: "10.1.3.2/24", gateway: "10.1.3.1" },
    ],
    dns: {},
  },
  commands: ["CHECK"],
};

/** 1.1.0: routes have metrics. */
const NEWEST: Form = {
  ...LISTED,
  oneFamily: { ...LISTED.oneFamily, routes: [{ dst: "0.0.0.0/0", mtu: 1400 }] },
  bothFamilies: { ...LISTED.bothFamilies, routes: ROUTES },
  commands: ["CHECK", "GC", "STATUS"],
};

const VERSIONS: readonly { id: string; version: string; form: Form }[] = [
  { id: "C0101", version: "0.1.0", form: BY_FAMILY },
  { id: "C0102", version: "0.2.0", form: BY_FAMILY },
  { id: "C0103", version: "0.3.0", form: NUMBERED },
  { id: "C0104", version: "0.3.1", form: NUMBERED },
  { id: "C0105", version: "0.4.0", form: { ...NUMBERED, commands: ["CHECK"] } },
  { id: "C0106", version: "1.0.0", form: LISTED },
  { id: "C0107", version: "1.1.0", form: NEWEST },
];

describe("versions", () => {
  let agent: TestingAgent;
  let caller: Caller;
  before(buildPlugin);
  beforeEach(async () => {
    agent = await TestingAgent.start();
    caller = new Caller(agent.socket);
  });
  afterEach(() => agent.remove());

  /** ADD, the same again, CHECK, DEL and DEL again, in a network of its own. */
  async function live(ipam: object, { commands }: Form, shape: object): Promise<void> {
    const result = { cniVersion: caller.cniVersion, ...shape };
    const later = { conf: { prevResult: result } };
    const answersCheck = commands.includes("CHECK");
    caller.ipam = ipam;
    caller.network += "-next";
    for (const time of ["first", "second"]) {
      const { rc, stdout, stderr } = await caller.call("ADD");
      assert.deepEqual([rc, stderr], [0, ""], stdout);
      assert.deepEqual(JSON.parse(stdout), result, `the ${time} ADD`);
    }
    if (answersCheck) await caller.silently("CHECK", later);
    else assert.equal(await caller.refused("CHECK", later), "1 config version does not allow CHECK");
    assert.notDeepEqual(agent.held, []);
    await caller.del(later);
    assert.deepEqual(agent.held, []);
    await caller.del();
    if (!answersCheck) return;
    const missing = `Failed to find address added by container c1 for eth0 in network ${caller.network}`;
    assert.equal(await caller.refused("CHECK", later), `151 ${missing}`);
  }

  /** Frees what it attached, or is refused and frees nothing. */
  async function housekeeping({ commands }: Form): Promise<void> {
    assert.equal((await caller.call("ADD", { ipam: ONE_FAMILY })).rc, 0);
    const none = { conf: { "cni.dev/valid-attachments": [] } };
    for (const command of ["STATUS", "GC"]) {
      if (commands.includes(command)) await caller.silently(command, none);
      else assert.equal(await caller.refused(command, none), `1 config version does not allow ${command}`);
    }
    assert.equal(agent.held.length, commands.includes("GC") ? 0 : 1);
  }

  for (const { id, version, form } of VERSIONS) {
    it(`${id} the life of an attachment in ${version}`, async () => {
      caller.cniVersion = version;
      await live(ONE_FAMILY, form, form.oneFamily);
      await live(BOTH_FAMILIES, form, form.bothFamilies);
      if (form.twoOfOneFamily !== undefined) {
        await live(TWO_OF_ONE_FAMILY, form, form.twoOfOneFamily);
      } else {
        const words = `7 CNI version ${version} does not support more than 1 address per family`;
        assert.equal(await caller.refused("ADD", { ipam: TWO_OF_ONE_FAMILY }), words);
      }
      await housekeeping(form);
    });
  }

  it("C0108 a configuration without a version is one of 0.1.0", async () => {
    for (const cniVersion of [undefined, "", null]) {
      const { stdout } = await caller.call("ADD", { conf: { cniVersion } });
      const expected = { cniVersion: "0.1.0", ip4: { ip: "10.1.2.2/24", gateway: "10.1.2.1" }, dns: {} };
      assert.deepEqual(JSON.parse(stdout), expected);
    }
  });

  it("C0109 an ADD of an unknown version is refused and holds nothing; its DEL is not refused", async () => {
    for (const cniVersion of ["1.2.0", "0.3", "1.0", "v1.0.0", "1.0.0-rc1", "9.9.9"]) {
      const { rc, stdout } = await caller.call("ADD", { conf: { cniVersion } });
      const list = VERSIONS.map(({ version }) => `"${version}"`).join(" ");
      assert.equal(rc, 1);
      assert.deepEqual(JSON.parse(stdout), {
        cniVersion: "1.1.0",
        code: 1,
        msg: "incompatible CNI versions",
        details: `config is "${cniVersion}", plugin supports [${list}]`,
      });
      assert.deepEqual(agent.held, []);
      await caller.del({ conf: { cniVersion } });
    }
  });

  it("C0110 an attachment of one version is known in every other", async () => {
    await caller.add({ ipam: BOTH_FAMILIES });
    for (const { version, form } of VERSIONS) {
      const { stdout } = await caller.call("ADD", { ipam: BOTH_FAMILIES, conf: { cniVersion: version } });
      assert.deepEqual(JSON.parse(stdout), { cniVersion: version, ...form.bothFamilies });
    }
    assert.deepEqual(agent.held, ["10.1.2.2", "fd00:1::2"]);
    await caller.del({ conf: { cniVersion: "0.2.0" } });
    assert.deepEqual(agent.held, []);
  });
});
