// SPDX-License-Identifier: Apache-2.0
// Whatever people mistype is refused, in words that name it: every field of Berth's kinds, every annotation of Berth's.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { NAMESPACE_DEFAULTS } from "../../allocator/manifest/annotations.ts";
import { OWN_PREFIX, OWN_REQUESTS } from "../../allocator/manifest/own-keys.ts";
import { type Json, pod } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { type Definition, definitions } from "./crds.ts";
import { POOL_OBJECTS, statefulSet } from "./manifests.ts";
import { misspeltFields, wrongTypes } from "./misspelt.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("what people mistype", () => {
    let cluster: WebhookCluster;

    before(async () => {
      cluster = await WebhookCluster.open();
    });
    after(() => cluster?.close());

    /** One call for all of them; what it says, one mistake to a line or more. Nothing of it is kept. */
    async function refusalsOf(items: readonly Json[]): Promise<string> {
      // not as a List, which kubectl judges itself
      const stdin = items.map((item) => `---\n${JSON.stringify(item)}\n`).join("");
      const { rc, stdout, stderr } = await cluster.plane.kubectl(["apply", "-f", "-"], { stdin });
      assert.equal(stdout, "");
      assert.equal(rc, 1);
      return stderr;
    }

    const nameOf = (n: number) => `mistake-${n}`;
    const named = (object: Json, n: number): Json => ({
      ...object,
      metadata: { ...(object["metadata"] as Json | undefined), name: nameOf(n), namespace: "shop" },
    });

    for (const definition of definitions()) {
      const { kind } = definition.spec.names;
      it(`every field of an ${kind}, misspelt, is named`, async () => {
        const mistakes = misspeltFields(definition);
        const said = await refusalsOf(mistakes.map(({ object }, n) => placed(definition, named(object, n))));
        assert.deepEqual(
          mistakes.map(({ path }) => path).filter((path) => !said.includes(`unknown field "${path}"`)),
          [],
          said,
        );
      });

      it(`every field of an ${kind}, of a wrong type, is named with the right one`, async () => {
        const mistakes = wrongTypes(definition);
        const said = await refusalsOf(mistakes.map(({ object }, n) => placed(definition, named(object, n))));
        const about = new Map(
          said.split(/^(?=The |Error)/m).map((text) => [/"(mistake-\d+)"/.exec(text)?.[1], text]),
        );
        assert.deepEqual(
          mistakes.filter(({ path, type }, n) => {
            return about.get(nameOf(n))?.includes(`${path} in body must be of type ${type}`) !== true;
          }),
          [],
          said,
        );
      });
    }

    /** Another letter at the end, one less in the middle, and upper case, of the name and of all. */
    function misspellings(key: string): readonly string[] {
      const name = key.slice(OWN_PREFIX.length);
      const middle = Math.floor(name.length / 2);
      const names = [
        `${name}${name.at(-1)}`,
        name.slice(0, middle) + name.slice(middle + 1),
        name.toUpperCase(),
      ];
      return [...names.map((wrong) => `${OWN_PREFIX}${wrong}`), key.toUpperCase()];
    }

    /** Where annotations stand, with the keys that are read there. */
    const CARRIERS: Readonly<Record<string, readonly [readonly string[], (annotations: Json) => Json]>> = {
      pod: [OWN_REQUESTS, (annotations) => pod("x", { annotations: annotations as Record<string, string> })],
      template: [OWN_REQUESTS, (annotations) => statefulSet("x", 1, annotations)],
      namespace: [
        NAMESPACE_DEFAULTS,
        (annotations) => ({ apiVersion: "v1", kind: "Namespace", metadata: { annotations } }),
      ],
    };

    for (const [carrier, [keys, objectWith]] of Object.entries(CARRIERS)) {
      it(`every annotation of a ${carrier}, misspelt, is refused with the one that was meant`, async () => {
        const mistakes = keys.flatMap((key) => misspellings(key).map((wrong) => ({ key, wrong })));
        const said = await refusalsOf(mistakes.map(({ wrong }, n) => named(objectWith({ [wrong]: "x" }), n)));
        const missing = mistakes.filter(
          ({ key, wrong }) =>
            !said.includes(`annotation ${wrong}: berth knows no such annotation; did you mean ${key}?`),
        );
        assert.deepEqual(missing, [], said);
      });

      it(`every annotation of a ${carrier}, with a value that means nothing, is refused and named`, async () => {
        const said = await refusalsOf(keys.map((key, n) => named(objectWith({ [key]: "two of them" }), n)));
        assert.deepEqual(
          keys.filter((key) => !said.includes(`annotation ${key}: `)),
          [],
          said,
        );
      });
    }

    for (const kind of ["pool", "claim"]) {
      it(`every annotation of Berth's on a ${kind} is refused, with where to write it`, async () => {
        const whole = kind === "pool" ? POOL_OBJECTS[0] : CLAIM;
        const keys = [...OWN_REQUESTS, ...OWN_REQUESTS.map((key) => key.toUpperCase())];
        const said = await refusalsOf(
          keys.map((key, n) => named({ ...whole, metadata: { annotations: { [key]: "x" } } }, n)),
        );
        const advice = `berth reads no annotations of a ${kind}; write what you want into its spec, and remove the annotation`;
        assert.deepEqual(
          keys.filter((key) => !said.includes(`annotation ${key}: ${advice}`)),
          [],
          said,
        );
      });
    }
  });
}

const CLAIM: Json = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "IPClaim",
  spec: { request: { pools: ["db"] } },
};

/** Without a namespace, where the kind has none. */
function placed({ spec }: Definition, object: Json): Json {
  if (spec.scope === "Namespaced") return object;
  const { namespace: _none, ...metadata } = object["metadata"] as Json;
  return { ...object, metadata };
}
