// SPDX-License-Identifier: Apache-2.0
// A network that host-local has served becomes Berth's while pods of it are up.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { linuxHost } from "../../ipam-plugin/agent/journal/host.ts";
import { leasesOn } from "../../ipam-plugin/agent/journal/host-local-leases.ts";
import { run } from "../support/process.ts";
import { buildPlugin, runPlugin } from "./plugin.ts";
import { noClaims, TestingAgent } from "./testing-agent.ts";

const HOST_LOCAL = "/usr/lib/cni/host-local";
const skip = existsSync(HOST_LOCAL) ? false : "no host-local (Debian: containernetworking-plugins)";

describe("a network of host-local that becomes Berth's", { skip }, () => {
  let folder: string;
  let agent: TestingAgent;
  let looks = 0; // at what became of host-local's containers
  before(async () => {
    await buildPlugin();
    folder = await mkdtemp(join(tmpdir(), "berth-host-local-"));
    for (const name of ["results", "netns"]) await mkdir(join(folder, name));
    const leases = leasesOn(linuxHost, [join(folder, "results")], Date.now);
    const live: typeof leases.live = (scope) => {
      looks++;
      return leases.live(scope);
    };
    const hostLocalLeases = { ...leases, live };
    agent = await TestingAgent.start(noClaims, { hostLocalLeases });
  });
  after(async () => {
    await agent.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const netnsOf = (cid: string) => join(folder, "netns", cid);

  function configOf(type: string) {
    const ipam = { type, subnet: "10.7.0.0/29", dataDir: join(folder, "networks") };
    return { text: JSON.stringify({ cniVersion: "1.0.0", name: "net", ipam }) };
  }

  function envOf(command: string, cid: string): Record<string, string> {
    const env = { CNI_COMMAND: command, CNI_CONTAINERID: cid, CNI_NETNS: netnsOf(cid), CNI_IFNAME: "eth0" };
    return { ...env, CNI_ARGS: "", CNI_PATH: "/usr/lib/cni" };
  }

  /** A sandbox by host-local, as containerd makes one: its namespace, the lease, and what libcni keeps. */
  async function byHostLocal(cid: string): Promise<string> {
    await writeFile(netnsOf(cid), "");
    const { rc, stdout } = await run(HOST_LOCAL, [], {
      env: envOf("ADD", cid),
      stdin: configOf("host-local"),
    });
    assert.equal(rc, 0, stdout);
    await writeFile(join(folder, "results", `net-${cid}-eth0`), JSON.stringify({ netns: netnsOf(cid) }));
    return JSON.parse(stdout).ips[0].address;
  }

  /** The runtime ends it by a DEL of the network as it is now: host-local never hears of it. */
  async function end(cid: string): Promise<void> {
    await byBerth("DEL", cid);
    await rm(netnsOf(cid));
    await rm(join(folder, "results", `net-${cid}-eth0`));
  }

  async function byBerth(command: string, cid: string, more: Record<string, string> = {}): Promise<string> {
    const { stdout } = await runPlugin(
      agent.socket,
      { ...envOf(command, cid), ...more },
      configOf("berth").text,
    );
    const { ips, msg }: { ips?: { address: string }[]; msg?: string } = JSON.parse(stdout || "{}");
    return ips?.[0]?.address ?? msg ?? "";
  }

  it("gives no address twice, and those of its pods once they have ended", async () => {
    assert.equal(await byHostLocal("old-a"), "10.7.0.2/29");
    assert.equal(await byHostLocal("old-b"), "10.7.0.3/29");

    assert.equal(await byBerth("ADD", "new-a"), "10.7.0.4/29");
    assert.equal(await byBerth("ADD", "new-b"), "10.7.0.5/29");
    assert.equal(await byBerth("ADD", "new-c"), "10.7.0.6/29");
    assert.equal(looks, 0, "files are read only where nothing else is free");
    const full = await byBerth("ADD", "late");
    assert.equal(looks, 1);
    assert.match(full, /no IP addresses available/);
    assert.match(full, /host-local holds 2 for containers that may be up, by its files in .*networks\/net/);

    await end("old-a");
    // of a lease this old no ADD is under way any more
    const old = Date.now() / 1000 - 1_200;
    await utimes(join(folder, "networks", "net", "10.7.0.2"), old, old);
    const left = await readdir(join(folder, "networks", "net"));
    assert.ok(left.includes("10.7.0.2"), "its lease is still there");
    assert.equal(await byBerth("ADD", "late"), "10.7.0.2/29");
  });

  it("refuses an address that is asked for and that a pod of host-local has", async () => {
    const refusal = await byBerth("ADD", "asks-for-it", { CNI_ARGS: "IP=10.7.0.3" });
    assert.match(refusal, /10\.7\.0\.3 is not available .*container old-b \(eth0\) has it/);
  });
});
