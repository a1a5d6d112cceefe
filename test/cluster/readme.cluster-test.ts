// SPDX-License-Identifier: Apache-2.0
// The README's commands, as a first-time user copies and pastes them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { partOf } from "../api/binaries.ts";
import { run } from "../support/process.ts";
import { importBerth, isInstalled } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Cluster } from "./cluster.ts";
import { PATH } from "./machine.ts";
import { commandsOf } from "./readme-commands.ts";
import { StateFolder } from "./state.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

describe("README", () => {
  it(
    "E0561 the commands of the section In a cluster do what they say, in a cluster without Berth",
    caseOptions({ machines: true }),
    async (t) => {
      const cluster = new Cluster(StateFolder.of(process.env));
      if (await isInstalled(cluster)) {
        t.skip("Berth is installed in this cluster already; `make cluster-down` first");
        return;
      }
      const times = new Times("E0561");
      await importBerth(cluster); // in the place of a registry
      const { path, kubeconfig } = cluster.state;
      const tools = [...new Set(["kubectl", "helm"].map((tool) => dirname(partOf(tool as "kubectl"))))];
      const env = {
        PATH: [`${ROOT}build`, `${ROOT}node_modules/.bin`, ...tools, PATH].join(":"),
        HOME: path,
        KUBECONFIG: kubeconfig,
      };
      const scripts = commandsOf(readFileSync(`${ROOT}README.md`, "utf8"), "In a cluster");
      assert.ok(scripts.length > 0);
      const printed: string[] = [];
      for (const [n, script] of scripts.entries()) {
        const { rc, stdout, stderr } = await run("bash", ["-c", `cd "${ROOT}"\nset -e\n${script}`], { env });
        assert.equal(rc, 0, `${script}\n${stdout}${stderr}`);
        printed.push(`$ ${script}\n${stdout}${stderr}`);
        times.step(`block ${n + 1}`);
      }
      t.diagnostic(printed.join("\n"));
      const refused = await run("kubectl", ["apply", "-f", `${ROOT}examples/refused/conflict.yaml`], { env });
      assert.notEqual(refused.rc, 0);
      assert.match(
        refused.stderr,
        /address 10\.20\.0\.51 in pool "db" is held by shop\/licence \(Pod licence\)/,
      );
      const ping = [
        "exec",
        "mysql-0",
        "--namespace",
        "shop",
        "--",
        "ping",
        "-c",
        "1",
        "-w",
        "5",
        "10.20.0.73",
      ];
      const reached = await run("kubectl", ping, { env });
      assert.equal(reached.rc, 0, reached.stdout + reached.stderr);
      const { rc, stdout } = await run("kubectl", ["berth", "check"], { env });
      assert.equal(rc, 0, stdout);
      times.end();
    },
  );
});
