// SPDX-License-Identifier: Apache-2.0
// rights.ts [--write]: prints docs/rights.md, what each account of Berth may do and why, or writes it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rightsDocument } from "./rights-table.ts";

const ROOT = join(import.meta.dirname, "..");
const RBAC = join(ROOT, "charts/berth/files/rbac");
const FILES = ["webhook.yaml", "issuer.yaml", "agent.yaml", "people.yaml"];

const manifests = FILES.map((name) => readFileSync(join(RBAC, name), "utf8"));
const template = (name: string) => readFileSync(join(ROOT, "charts/berth/templates", name), "utf8");
const text = rightsDocument(manifests, {
  access: template("access.yaml"),
  agent: template("agent.yaml"),
  webhook: template("webhook.yaml"),
});
if (process.argv[2] === "--write") writeFileSync(join(ROOT, "docs/rights.md"), text);
else process.stdout.write(text);
