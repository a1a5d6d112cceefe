// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { loadKubeConfig, namespaceOf } from "./kubeconfig.ts";

/** Files in a folder that goes with the test: name -> text. */
function filesOf(t: TestContext, texts: Readonly<Record<string, string>>): (name: string) => string {
  const folder = mkdtempSync(join(tmpdir(), "berthctl-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  return (name) => join(folder, name);
}

function configText(names: {
  context: string;
  server: string;
  namespace?: string;
  current?: string;
}): string {
  const { context, server, namespace, current = context } = names;
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: context, context: { cluster: "c", user: "u", namespace } }],
    "current-context": current,
  });
}

it("merges as kubectl does: absent files are passed over, the first of a name counts", (t) => {
  const file = filesOf(t, {
    a: configText({ context: "one", server: "https://a", namespace: "shop" }),
    b: configText({ context: "two", server: "https://b" }),
  });
  const config = loadKubeConfig({ kubeconfigs: [file("none"), file("a"), file("b")] });
  assert.equal(config.getCurrentContext(), "one");
  assert.equal(config.getCurrentCluster()?.server, "https://a");
  assert.equal(namespaceOf(config), "shop");
  const other = loadKubeConfig({ kubeconfigs: [file("a"), file("b")], context: "two" });
  assert.equal(other.getCurrentCluster()?.server, "https://a");
  assert.equal(namespaceOf(other), "default");
});

it("reads the token of a user from the file that it names, wherever that is", async (t) => {
  const users = [
    { name: "v", user: { tokenFile: "other" } },
    { name: "u", user: { tokenFile: "token", token: "t" } },
  ];
  const text = configText({ context: "one", server: "https://a" });
  const file = filesOf(t, { a: JSON.stringify({ ...JSON.parse(text), users }), token: "from-file\n" });
  const options: { headers?: object } = {};
  await loadKubeConfig({ kubeconfigs: [file("a")] }).applyToHTTPSOptions(options);
  assert.deepEqual(options.headers, { Authorization: "Bearer from-file" });
});

it("names what is wrong", (t) => {
  const file = filesOf(t, {
    a: configText({ context: "one", server: "https://a" }),
    lost: configText({ context: "one", server: "https://a", current: "gone" }),
    empty: "{}",
    broken: "{",
  });
  const wrong = (kubeconfigs: string[], message: string | RegExp, context?: string) =>
    assert.throws(() => loadKubeConfig({ kubeconfigs, ...(context === undefined ? {} : { context }) }), {
      code: "CONFIG_INVALID",
      message,
    });
  wrong([file("x"), file("y")], `there is no kubeconfig ${file("x")}, ${file("y")}`);
  wrong([file("lost")], `kubeconfig ${file("lost")} has no context "gone"; it has one`);
  wrong([file("a")], `kubeconfig ${file("a")} has no context "prod"; it has one`, "prod");
  wrong(
    [file("empty")],
    `kubeconfig ${file("empty")} has no current context; choose one with --context NAME: it has none`,
  );
  wrong([file("broken")], new RegExp(`^kubeconfig ${file("broken")} cannot be read: .+$`));
});

it("refuses an authority that is said and empty, of the cluster that is asked alone", (t) => {
  const config = JSON.parse(configText({ context: "one", server: "https://a" }));
  config.clusters.push({ name: "d", cluster: { server: "https://b", "certificate-authority-data": "" } });
  config.contexts.push({ name: "two", context: { cluster: "d", user: "u" } });
  const file = filesOf(t, { a: JSON.stringify(config) });
  const kubeconfigs = [file("a")];
  assert.equal(loadKubeConfig({ kubeconfigs }).getCurrentCluster()?.server, "https://a");
  assert.throws(() => loadKubeConfig({ kubeconfigs, context: "two" }), {
    code: "CONFIG_INVALID",
    message: new RegExp(`^kubeconfig ${file("a")}: certificate-authority-data of cluster "d" is empty; `),
  });
});
