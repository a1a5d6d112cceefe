// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "../run.ts";
import { Folder } from "../testing/folder.ts";
import { NO_CLUSTER } from "./target.ts";

const setting = { ...NO_CLUSTER, kubectl: true, dataNamed: false };

describe("the words of other tools", () => {
  for (const [word, command] of [
    ["list", "get"],
    ["pools", "get"],
    ["whois", "who"],
    ["describe", "explain"],
    ["status", "check"],
    ["unreserve", "release"],
    ["free", "release"],
    ["allocate", "reserve"],
  ] as const) {
    it(`${word} leads to ${command}`, async (t) => {
      const folder = await Folder.empty(t);
      const { code, stderr } = await folder.call(word);
      assert.equal(stderr, `Error: there is no command "${word}"; did you mean ${command}?\n`);
      assert.equal(code, 2);
    });
  }

  for (const [argv, message] of [
    [["get", "ips"], '"ips" cannot be listed; did you mean reservations?'],
    [
      ["reserve", "10.20.0.60"],
      "give a name for the claim, too: reserve [NAMESPACE/]NAME --address 10.20.0.60",
    ],
    [
      ["reserve", "shop/vip", "--address", "10.20.0.60-10.20.0.69"],
      '--address "10.20.0.60-10.20.0.69" is a range, and a claim has one address of each family; to keep a range, list it in its pool: in spec.reserved, for who asks for an address of it by name, or in exclude of spec.ranges, for nobody',
    ],
    [["release", "pod/mysql-0", "-n", "shop"], "name it without pod/: mysql-0 -n shop"],
  ] as const) {
    it(`${argv.join(" ")} is told what to write`, async (t) => {
      const folder = await Folder.empty(t);
      assert.deepEqual(await folder.call(...argv), { code: 2, stdout: "", stderr: `Error: ${message}\n` });
    });
  }

  for (const [name, why] of [
    ["fence", "which is for hosts that share an etcd; a node that is off is fenced with: kubectl taint"],
    ["import", "which is for hosts that share an etcd; "],
    ["adopt", "which is for a data folder; "],
  ] as const) {
    it(`kubectl berth ${name} is told what it is for`, async (t) => {
      const folder = await Folder.empty(t);
      const out = { stdout: "", stderr: "" };
      assert.equal(await run([name], { ...folder.context(out), setting }), 2);
      assert.equal(out.stderr.startsWith(`Error: kubectl berth has no ${name}, ${why}`), true, out.stderr);
    });
  }

  it("lead kubectl berth to no command that it has not", async (t) => {
    const folder = await Folder.empty(t);
    const out = { stdout: "", stderr: "" };
    assert.equal(await run(["create"], { ...folder.context(out), setting }), 2);
    assert.match(out.stderr, /^Error: there is no command "create"; there are get, /);
  });
});
