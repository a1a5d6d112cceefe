// SPDX-License-Identifier: Apache-2.0
// The kinds of the operators that the chart makes objects for, as their own modules define them.
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inheritedEnv, run } from "../support/process.ts";
import { parseYaml } from "../support/yaml.ts";
import { versionOf } from "./binaries.ts";
import type { Definition } from "./crds.ts";

const CERT_MANAGER = "github.com/cert-manager/cert-manager";

/** Module, folder of its definitions, and which of them are needed. */
const OPERATORS = {
  "cert-manager": {
    module: `${CERT_MANAGER}@${versionOf(CERT_MANAGER, "cert-manager/go.mod")}`,
    folder: "deploy/crds",
    files: /^cert-manager\.io_/,
  },
  "prometheus-operator": {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    folder: "example/prometheus-operator-crd",
    files: /_(servicemonitors|podmonitors|prometheusrules)\.yaml$/,
  },
};

/** Throws what go said when the module cannot be had. */
export async function definitionsOf(operator: keyof typeof OPERATORS): Promise<readonly Definition[]> {
  const { module, folder, files } = OPERATORS[operator];
  const place = join(await fetched(module), folder);
  const names = readdirSync(place).filter((name) => files.test(name));
  return names.map((name) => parseYaml(readFileSync(join(place, name), "utf8")) as Definition);
}

/** The folder of a module, in go's own cache; go compares it with the public checksums. */
async function fetched(module: string): Promise<string> {
  const env = inheritedEnv();
  // outside of every module of ours
  const command = ["-C", tmpdir(), "mod", "download", "-json", module];
  const { stdout, stderr } = await run("go", command, { env });
  const { Dir = "", Error: error = stderr } = stdout === "" ? {} : JSON.parse(stdout);
  if (Dir === "") throw new Error(`go has no ${module}: ${error}`);
  return Dir;
}
