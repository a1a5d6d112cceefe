// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { compileCache, run } from "../test/support/process.ts";
import { programFile } from "../test/support/programs.ts";

const MAIN = programFile("webhook/main");

async function ends(env: Readonly<Record<string, string>>) {
  const { rc, stdout, stderr } = await run(process.execPath, [MAIN], {
    env: { ...compileCache(), ...env },
  });
  return { rc, stdout, stderr };
}

describe("the webhook as a process", () => {
  it("says in one line what is wrong with its surroundings, and ends", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-webhook-"));
    const kubeconfig = join(folder, "kubeconfig");
    try {
      assert.deepEqual(await ends({}), {
        rc: 1,
        stdout: "",
        stderr: "berth-webhook: BERTH_NAMESPACE is not set; give it the namespace that berth runs in\n",
      });
      const env = { BERTH_NAMESPACE: "berth-system", BERTH_KUBECONFIG: kubeconfig, BERTH_TLS: folder };
      assert.match(
        (await ends(env)).stderr,
        /^berth-webhook: BERTH_KUBECONFIG \S+ cannot be read: ENOENT[^\n]*\n$/,
      );
      writeFileSync(kubeconfig, kubeConfig("http://127.0.0.1:1"));
      assert.match((await ends(env)).stderr, /^berth-webhook: the kubeconfig's cluster must have [^\n]*\n$/);
      writeFileSync(kubeconfig, kubeConfig("https://127.0.0.1:1"));
      assert.match(
        (await ends(env)).stderr,
        /^berth-webhook: the certificate cannot be read: ENOENT[^\n]*; mount the webhook's secret at \S+, or set BERTH_TLS\n$/,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function kubeConfig(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}
