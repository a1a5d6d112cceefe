// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { ALIASES } from "../../ipam-plugin/cni/drop-ins.ts";
import manifest from "../../package.json" with { type: "json" };
import { chartValues } from "../../scripts/chart-values.ts";

const chart = new URL("../../charts/berth/", import.meta.url);
const read = (file: string) => readFileSync(new URL(file, chart), "utf8");

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: { readonly enum?: readonly string[] };
  readonly definitions?: Readonly<Record<string, Schema>>;
}

const ROOT = JSON.parse(read("values.schema.json")) as Schema;
/** Parts of a pod that Kubernetes judges itself. */
const FOREIGN = new Set(["nodeAffinity", "podAffinity", "podAntiAffinity", "global"]);

function resolved(schema: Schema): Schema {
  const name = schema.$ref?.replace("#/definitions/", "");
  return name === undefined ? schema : (ROOT.definitions?.[name] ?? assert.fail(`no definition ${name}`));
}

function schemaAt(path: string): Schema | undefined {
  return path
    .split(".")
    .reduce<Schema | undefined>((schema, key) => schema && resolved(schema).properties?.[key], ROOT);
}

/** The paths of all objects in a schema that take keys that nobody named. */
function open(schema: Schema, path: string): readonly string[] {
  const { type, properties, additionalProperties } = resolved(schema);
  const below = Object.entries(properties ?? {}).flatMap(([key, value]) =>
    FOREIGN.has(key) ? [] : open(value, `${path}.${key}`),
  );
  const isOpen = type === "object" && (additionalProperties ?? true) === true;
  return isOpen ? [path, ...below] : below;
}

/** What a schema names and the chart has no value for. */
function unknown(schema: Schema, value: unknown, path: string): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, below]) => {
    if (FOREIGN.has(key)) return [];
    const has = typeof value === "object" && value !== null && key in value;
    return has
      ? unknown(below, (value as Record<string, unknown>)[key], `${path}.${key}`)
      : [`${path}.${key}`];
  });
}

describe("the values of the chart", () => {
  it("give the plugin every name whose networks it reads, and no other", () => {
    const { items } = schemaAt("cni.aliases") ?? assert.fail();
    assert.deepEqual(items?.enum, ALIASES);
  });

  it("stand in the schema, all of them", () => {
    for (const { path } of chartValues(read("values.yaml")))
      assert.ok(schemaAt(path), `no schema for ${path}`);
  });

  it("are all that the schema names", () => {
    const issuer = ["name", "kind", "group"].map((key) => `.certificates.certManager.issuerRef.${key}`);
    const labels = ["user", "role", "type", "level"].map((key) => `.agent.seLinuxOptions.${key}`);
    assert.deepEqual(unknown(ROOT, parse(read("values.yaml")), ""), [...issuer, ...labels]);
  });

  it("are closed: no object takes a key that nobody named", () => {
    assert.deepEqual(open(ROOT, ""), []);
  });
});

describe("Chart.yaml", () => {
  it("has the version of the program", () => {
    const { version, appVersion } = parse(read("Chart.yaml")) as { version: string; appVersion: string };
    assert.deepEqual([version, appVersion], [manifest.version, manifest.version]);
  });
});

describe("the program that the chart starts", () => {
  it("is one that the image has, made from a source that is there", () => {
    const dockerfile = readFileSync(new URL("../../Dockerfile", import.meta.url), "utf8");
    for (const template of ["webhook.yaml", "agent.yaml"]) {
      const [, started = ""] =
        /command: \[node,(?: --\S+,)* (\S+)\.js\]/.exec(read(`templates/${template}`)) ?? [];
      assert.ok(dockerfile.includes(`${started}.js`), `${template} starts ${started}.js`);
      assert.ok(existsSync(new URL(`../../${started}.ts`, import.meta.url)));
    }
  });
});

describe("the variables that the chart sets", () => {
  for (const [template, config] of [
    ["webhook.yaml", "webhook/config.ts"],
    ["agent.yaml", "ipam-plugin/agent/config.ts"],
  ] as const) {
    it(`are read by ${config}`, () => {
      const source = readFileSync(new URL(`../../${config}`, import.meta.url), "utf8");
      const set = read(`templates/${template}`).match(/name: BERTH_[A-Z_]+/g) ?? [];
      assert.ok(set.length > 2);
      for (const variable of set.map((text) => text.slice("name: ".length)))
        assert.ok(source.includes(`| \`${variable}\``), `${variable} is in no table of ${config}`);
    });
  }
});
