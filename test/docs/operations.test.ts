// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { withTables } from "../../scripts/operations-tables.ts";
import { METRICS } from "../../system/metric-definitions.ts";
import { run } from "../support/process.ts";
import { knownMetrics } from "./expressions.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const operations = read("docs/operations.md");
const alerts = read("charts/berth/files/alerts.yaml");

/** What the product is made of. */
const sources = globSync("{allocator,kube,webhook,ipam-plugin,system}/**/*.ts", { cwd: ROOT })
  .filter((path) => !path.endsWith(".test.ts") && !path.includes("/testing/"))
  .filter((path) => !path.endsWith("metric-table.ts"))
  .map(read)
  .join("\n");

/** As GitHub makes anchors of headings. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
const headingsOf = (text: string) => [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);

describe("docs/operations.md", () => {
  it("has the tables that `node scripts/metrics.ts --write` writes", () => {
    assert.equal(operations, withTables(operations));
  });

  it("links to what is there", () => {
    for (const [, file = "", anchor = ""] of operations.matchAll(/\]\(([\w./-]*)(?:#([\w-]+))?\)/g)) {
      const target = file === "" ? "docs/operations.md" : join("docs", file);
      assert.ok(existsSync(join(ROOT, target)), target);
      if (anchor !== "")
        assert.ok(headingsOf(read(target)).map(anchorOf).includes(anchor), `${file}#${anchor}`);
    }
  });

  it("and the alerts name metrics that are exposed", async () => {
    const known = await knownMetrics();
    for (const [name] of `${operations} ${alerts}`.matchAll(/\b(?:berth_[a-z]|nodejs_[a-z])[a-z0-9_]+/g))
      assert.ok(known.has(name), name);
  });

  it("has the sections that the alerts send their reader to", () => {
    const headings = headingsOf(operations);
    const sent = [...alerts.matchAll(/docs\/operations\.md, ([A-Z][\w ]+)/g)].map(([, to = ""]) => to);
    assert.ok(sent.length > 3);
    for (const to of sent)
      assert.ok(
        headings.some((heading) => heading.startsWith(to)),
        to,
      );
  });

  it("and the alerts name commands that there are", () => {
    const named = [...`${operations} ${alerts}`.matchAll(/\b(?:kubectl berth|berthctl) ([a-z]+)/g)];
    assert.ok(named.length > 5);
    for (const [line, command] of named)
      assert.ok(existsSync(join(ROOT, `cli/commands/${command}.ts`)), line);
  });

  it("and the alerts quote the log as it is written", () => {
    const quoted = [...alerts.matchAll(/`([a-z]+(?: [a-z]+){2,})`/g)].map(([, words = ""]) => words);
    const lines = quoted.filter((words) => !words.startsWith("kubectl "));
    assert.ok(lines.length > 4);
    for (const words of lines) assert.ok(sources.includes(words), words);
    assert.ok(operations.includes("'not bound to its pod'") && sources.includes("not bound to its pod"));
  });
});

const jq = await run("/usr/bin/jq", ["--version"]).catch(() => ({ rc: 1 }));

describe("docs/operations.md: a backup", { skip: jq.rc === 0 ? false : "no jq" }, () => {
  const [save = "", restore = ""] = [...operations.matchAll(/\bjq '([^']+)'/g)].map(
    ([, filter = ""]) => filter,
  );

  async function filtered(filter: string, text: string): Promise<string> {
    const { rc, stdout, stderr } = await run("/usr/bin/jq", ["-c", filter], { stdin: { text } });
    assert.equal(rc, 0, stderr);
    return stdout;
  }

  it("has what a person wrote of a claim, and nothing that Berth did", async () => {
    const metadata = { name: "lan", namespace: "shop" };
    const written = {
      ...{ identity: { kind: "Pod", name: "lan" }, interface: "net1" },
      ...{ request: { addresses: ["10.60.0.9"] }, retention: { whenDeleted: "Retain", ttl: null } },
    };
    const byHand = {
      metadata: { ...metadata, uid: "u", finalizers: ["berth.dev/in-use"] },
      spec: { ...written, handMade: true, nonce: "n", addresses: ["10.60.0.9"], binding: { node: "a" } },
      status: { attached: true },
    };
    const list = { kind: "List", items: [byHand, { metadata, spec: { ...written, nonce: "m" } }] };
    const saved = await filtered(save, JSON.stringify(list));
    const restored = JSON.parse(await filtered(restore, saved)) as unknown;
    assert.deepEqual(restored, { kind: "List", items: [{ metadata, spec: written }] });
  });
});

describe("metrics", () => {
  for (const name of Object.keys(METRICS)) {
    it(`${name} is measured somewhere`, () => {
      assert.ok(sources.includes(`"${name}"`));
    });
  }
});
