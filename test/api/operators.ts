// SPDX-License-Identifier: Apache-2.0
// The kinds of the operators that the chart makes objects for, as their own modules define them.
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { run } from "../support/process.ts";
import type { Definition } from "./crds.ts";

/** With the folder of its definitions, and those of them that the chart makes. */
const MODULES = [
  {
    module: "github.com/cert-manager/cert-manager@v1.21.2",
    folder: "deploy/crds",
    files: /_(certificates|issuers)\.yaml$/,
  },
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    folder: "example/prometheus-operator-crd",
    files: /_(servicemonitors|podmonitors|prometheusrules)\.yaml$/,
  },
];

/** Throws what go said when a module cannot be had. */
export async function operatorDefinitions(): Promise<readonly Definition[]> {
  const found = await Promise.all(
    MODULES.map(async ({ module, folder, files }) => {
      const place = join(await fetched(module), folder);
      const names = readdirSync(place).filter((name) => files.test(name));
      return names.map((name) => parse(readFileSync(join(place, name), "utf8")) as Definition);
    }),
  );
  return found.flat();
}

/** The folder of a module, in go's own cache; go compares it with the public checksums. */
async function fetched(module: string): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).map(([key, value = ""]) => [key, value]));
  // outside of every module of ours
  const command = ["-C", tmpdir(), "mod", "download", "-json", module];
  const { stdout, stderr } = await run("go", command, { env });
  const { Dir = "", Error: error = stderr } = stdout === "" ? {} : JSON.parse(stdout);
  if (Dir === "") throw new Error(`go has no ${module}: ${error}`);
  return Dir;
}
