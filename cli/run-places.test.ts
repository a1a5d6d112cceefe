// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "./run.ts";
import { NO_CLUSTER } from "./terminal/target.ts";
import { Folder } from "./testing/folder.ts";

describe("flags that say where", () => {
  for (const flags of [
    ["--data", "x"],
    ["--data=x"],
    ["--kubeconfig", "k"],
    ["--context", "c"],
    ["--wait=5s"],
  ]) {
    it(`may stand before the command: ${flags.join(" ")}`, async (t) => {
      const folder = await Folder.empty(t);
      const first = await folder.call(...flags, "get", "clams");
      assert.deepEqual(first, await folder.call("get", "clams", ...flags));
      assert.doesNotMatch(first.stderr, /there is no command/);
    });
  }

  const ETCD = "http://127.0.0.1:1";
  for (const [named, argv, note] of [
    [
      { dataNamed: true, kubeconfigNamed: true },
      ["get", "clams"],
      /^on the etcd http:\S+ \(BERTH_ETCD names it\), not on the data folder \S+ \(BERTH_DATA\) or the cluster of \/k \(KUBECONFIG\): say --etcd or --data or --context to choose\n/,
    ],
    [
      { dataNamed: true },
      ["apply", "x"],
      /^on the etcd .*, not on the data folder \S+ \(BERTH_DATA\): say --etcd or --data/,
    ],
    [{ dataNamed: true, kubeconfigNamed: true }, ["get", "clams", "--etcd", ETCD], /^Error: /],
    [{}, ["get", "clams"], /^Error: /],
  ] as const) {
    it(`are asked for beside BERTH_ETCD: ${JSON.stringify(named)} ${argv.join(" ")}`, async (t) => {
      const folder = await Folder.empty(t);
      const out = { stdout: "", stderr: "" };
      const etcd = { urls: ETCD };
      const setting = { ...NO_CLUSTER, dataNamed: false, kubeconfigs: ["/k"], ...named, etcd };
      assert.equal(await run(argv, { ...folder.context(out), setting }), 2);
      assert.match(out.stderr, note);
    });
  }
});

describe("a kubeconfig that is named", () => {
  const setting = { ...NO_CLUSTER, dataNamed: false, kubeconfigNamed: true, kubeconfigs: ["/k"] };
  for (const [argv, verb] of [
    [["apply", "x"], "apply"],
    [["delete"], "delete"],
    [["apply", "x", "--data", "DIR"], undefined],
    [["down"], undefined],
  ] as const) {
    it(`is no place of ${argv.join(" ")}`, async (t) => {
      const folder = await Folder.empty(t);
      const out = { stdout: "", stderr: "" };
      const { dataDir } = folder;
      const typed = argv.map((word) => (word === "DIR" ? dataDir : word));
      await run(typed, { ...folder.context(out), setting });
      const note = `on the data folder ${dataDir}, not on the cluster of /k (KUBECONFIG): for that, ${verb} with: kubectl ${verb}\n`;
      assert.equal(out.stderr.startsWith(note), verb !== undefined, out.stderr);
      assert.equal(out.stderr.includes("kubectl"), verb !== undefined, out.stderr);
    });
  }
});
