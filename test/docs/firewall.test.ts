// SPDX-License-Identifier: Apache-2.0
// The firewall of docs/hardening.md can be written again with other addresses: nothing of the earlier one stays.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { inheritedEnv, run } from "../support/process.ts";

const HARDENING = readFileSync(join(import.meta.dirname, "../../docs/hardening.md"), "utf8");
const RULES = /<!-- firewall -->\n```sh\n(.*?)```\n/s.exec(HARDENING)?.[1] ?? assert.fail("no rules");
const env = inheritedEnv();
/** In a network namespace of its own, which ends with it. */
const apart = (script: string) => run("unshare", ["-rn", "bash", "-euc", script], { env });

const { rc } = await apart("nft list ruleset").catch(() => ({ rc: 1 }));

describe("the firewall of docs/hardening.md", () => {
  it("takes away what it wrote before, and accepts before it drops", () => {
    const lines = RULES.split("\n").map((line) => line.trim());
    const begin = lines.indexOf("table inet berth");
    assert.deepEqual(lines.slice(begin, begin + 3), [
      "table inet berth",
      "delete table inet berth",
      "table inet berth {",
    ]);
    const rules = lines.filter((line) => line.startsWith("tcp dport 8443"));
    assert.deepEqual(
      rules.map((line) => line.split(" ").at(-1)),
      ["accept", "accept", "accept", "drop"],
    );
  });

  it("has after a second run the addresses of that run alone", {
    skip: rc === 0 ? false : "no nft, or no network namespaces",
  }, async () => {
    const other = RULES.replace("192.0.2.11", "192.0.2.12").replace("2001:db8::11", "2001:db8::12");
    const list = "nft list table inet berth";
    const [once, twice] = [await apart(`${other}${list}`), await apart(`${RULES}${RULES}${other}${list}`)];
    assert.deepEqual([once.rc, twice.rc], [0, 0], once.stderr + twice.stderr);
    assert.match(once.stdout, /192\.0\.2\.12/);
    assert.equal(twice.stdout, once.stdout);
  });
});
