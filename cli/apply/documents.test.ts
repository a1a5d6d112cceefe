// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Folder } from "../testing/folder.ts";
import { readDocuments } from "./documents.ts";

const noInput = { stdin: () => Promise.resolve("") };

function input(text: string) {
  return { stdin: () => Promise.resolve(text) };
}

async function names(paths: readonly string[], io = noInput): Promise<string[]> {
  const { objects } = await readDocuments(paths, io);
  return objects.map(
    ({ kind, json }) => `${kind.kind} ${(json["metadata"] as { name?: string }).name ?? ""}`,
  );
}

function pod(name: string): string {
  return `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\n`;
}

describe("readDocuments", () => {
  it("reads every document of a stream and passes over empty ones", async () => {
    const text = `---\n${pod("a")}---\n---\n# nothing\n---\n${pod("b")}...\n`;
    assert.deepEqual(await names(["-"], input(text)), ["Pod a", "Pod b"]);
  });

  it("reads JSON and opens lists, lists in lists too", async () => {
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" } };
    const inner = { apiVersion: "v1", kind: "List", items: [object] };
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: [object, inner] });
    assert.deepEqual(await names(["-"], input(list)), ["Pod a", "Pod a"]);
  });

  it("reads the files of a folder in the order of their names, not what is below it", async (t) => {
    const folder = await Folder.empty(t);
    const at = (name: string) => join(folder.dataDir, name);
    await writeFile(at("b.yml"), pod("b"));
    await writeFile(at("a.yaml"), pod("a"));
    await writeFile(at("c.json"), JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "c" } }));
    await writeFile(at("README.md"), "no YAML: [");
    await mkdir(at("below.yaml"));
    assert.deepEqual(await names([folder.dataDir]), ["Pod a", "Pod b", "Pod c"]);
    assert.deepEqual(await names([at("b.yml"), at("a.yaml")]), ["Pod b", "Pod a"]);
  });

  it("passes over kinds that are not its own and says so", async () => {
    const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    const { objects, skipped } = await readDocuments(["-"], input(`${service}---\n${pod("a")}`));
    assert.equal(objects.length, 1);
    assert.deepEqual(skipped, ["Service web (v1)"]);
  });

  it("names workloads that it does not read and whose pods ask for addresses", async () => {
    const daemons = (key: string) =>
      `kind: DaemonSet\napiVersion: apps/v1\nmetadata: {name: edge}\nspec: {template: {metadata: {annotations: {${key}: db}}}}\n---\n`;
    const { skipped, unheard } = await readDocuments(["-"], input(`${daemons("note")}${pod("a")}`));
    assert.deepEqual([skipped, unheard], [["DaemonSet edge (apps/v1)"], []]);
    for (const key of ["berth.dev/pools", "ipam.antrea.io/ippools"]) {
      const reported = await readDocuments(["-"], input(`${daemons(key)}${pod("a")}`));
      assert.deepEqual(reported.skipped, []);
      assert.deepEqual(reported.unheard, [
        `DaemonSet edge (apps/v1): ${key} in its template asks for nothing on one host, where berth hears of no DaemonSet and of none of its pods until they are applied; apply the pods`,
      ]);
    }
  });

  for (const [text, message] of [
    [
      "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
      "standard input holds none of Namespace, IPPool, IPClaim, StatefulSet, Deployment, Pod: Service web (v1)",
    ],
    [
      "kind: Foo\n",
      "standard input holds none of Namespace, IPPool, IPClaim, StatefulSet, Deployment, Pod: Foo",
    ],
    [
      "apiVersion: berth.dev/v1\nkind: IPPool\nmetadata: {name: py}\n",
      "standard input holds IPPool py (berth.dev/v1): write apiVersion: berth.dev/v1alpha1",
    ],
    [
      "apiVersion: berth.dev/v1alpha1\nkind: IpPool\nmetadata: {name: py}\n",
      "standard input holds IpPool py (berth.dev/v1alpha1): did you mean kind: IPPool?",
    ],
    ["", "standard input holds no object"],
    ["just text\n", "standard input holds something that is no Kubernetes object: it has no kind"],
    [`${pod("a")}---\nkind: [\n`, /^standard input, line 6: /],
    ["kind: Pod\nkind: Pod\n", /^standard input, line 2: Map keys must be unique/],
    ["a: &a [x]\nb: *c\n", /^standard input.*[Uu]nresolved alias/],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, async () => {
      await assert.rejects(readDocuments(["-"], input(text)), { code: "CONFIG_INVALID", message });
    });
  }

  it("does not fetch a URL, and says what to write", async () => {
    await assert.rejects(readDocuments(["https://example.org/pod.yaml"], input("")), {
      code: "CONFIG_INVALID",
      message:
        "https://example.org/pod.yaml is a URL, which is not fetched; write: curl -fsSL https://example.org/pod.yaml | berthctl ... -f -",
    });
  });

  it("refuses aliases that would grow without bound", async () => {
    const levels = Array.from({ length: 12 }, (_, i) => {
      const before =
        i === 0
          ? "x"
          : Array(9)
              .fill(`*l${i - 1}`)
              .join(", ");
      return `l${i}: &l${i} [${before}]`;
    });
    await assert.rejects(readDocuments(["-"], input(`kind: Pod\n${levels.join("\n")}\n`)), {
      code: "CONFIG_INVALID",
      message: /alias/i,
    });
  });

  it("names a file that is not there", async () => {
    await assert.rejects(readDocuments(["/nowhere/x.yaml"], noInput), {
      code: "CONFIG_INVALID",
      message: "/nowhere/x.yaml cannot be read: there is no such file or folder; name one that is there",
    });
  });

  it("asks for -f", async () => {
    await assert.rejects(readDocuments([], noInput), {
      message: "-f is missing: -f FILE, -f DIR, or -f - for standard input",
    });
  });
});
