// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { COMMANDS, run } from "../run.ts";
import { Folder } from "../testing/folder.ts";
import { NO_CLUSTER } from "./target.ts";

describe("kubectl berth", () => {
  const setting = { ...NO_CLUSTER, kubectl: true, dataNamed: false, kubeconfigs: ["/k"] };

  async function said(test: Parameters<typeof Folder.empty>[0], ...argv: readonly string[]) {
    const folder = await Folder.empty(test);
    const out = { stdout: "", stderr: "" };
    const code = await run(argv, { ...folder.context(out), setting });
    return { code, ...out };
  }

  it("lists no command and no flag that it refuses", async (t) => {
    const { stdout: list } = await said(t, "--help");
    assert.doesNotMatch(list, /hosts|--data|--etcd|^ {2}(?:up|down|apply|delete) /m);
    for (const { name, inCluster } of COMMANDS) {
      if (inCluster !== undefined) continue;
      const { code, stdout } = await said(t, name, "--help");
      assert.equal(code, 0, name);
      assert.doesNotMatch(stdout, /--data|--etcd|--wait|hosts|berthctl/, name);
      for (const wrong of ["--xyzzy", "--dat", "--etcd-key-file"]) {
        const { stderr } = await said(t, name, wrong);
        assert.match(stderr, new RegExp(`^Error: ${name} has no flag ${wrong}; (?:it has|did you mean) --`));
        assert.doesNotMatch(stderr.split(";")[1] ?? "", /--data|--etcd|--wait/, name);
      }
    }
  });

  it("still shows the others", async (t) => {
    const { stdout } = await said(t, "get", "--help");
    assert.match(stdout, /^Usage: kubectl berth get pools\|.*\|workloads \[.*\[--context NAME\]$/m);
    for (const flag of ["--namespace", "--output", "--kubeconfig", "--context", "--help"])
      assert.ok(stdout.includes(flag), flag);
  });

  for (const [argv, message] of [
    [["get", "hosts"], "hosts are listed by berthctl --etcd URL"],
    [["get"], "say what to list: pools, claims, reservations, blocks, attachments, pods, workloads"],
    [
      ["get", "claims", "--etcd-user", "x"],
      "kubectl berth is for the cluster and has no --etcd-user; use berthctl for the etcd of other hosts",
    ],
  ] as const) {
    it(`answers ${argv.join(" ")}`, async (t) => {
      assert.deepEqual(await said(t, ...argv), { code: 2, stdout: "", stderr: `Error: ${message}\n` });
    });
  }
});
