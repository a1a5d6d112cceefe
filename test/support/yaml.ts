// SPDX-License-Identifier: Apache-2.0
// YAML of our own files and of what helm prints. This library reads them in a fifth of the time of the one that Berth reads people's
// files with, which keeps every place for its messages; each file of tests on an API server reads some 100 kB, of a chart a megabyte.
import { CORE_SCHEMA, load, loadAll } from "js-yaml";

export function parseYaml(text: string): unknown {
  return load(text, { schema: CORE_SCHEMA });
}

/** Null for a document without anything. */
export function parseYamlDocuments(text: string): readonly unknown[] {
  return loadAll(text, { schema: CORE_SCHEMA });
}
