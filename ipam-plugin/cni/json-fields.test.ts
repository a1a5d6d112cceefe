// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isCniError } from "./errors.ts";
import { type Fields, parseFields } from "./json-fields.ts";

function fieldsOf(text: string): Fields {
  const fields = parseFields(text);
  assert.ok(!isCniError(fields));
  return fields;
}

describe("fields", () => {
  it("match keys in any letter case, and the last of several wins", () => {
    const fields = fieldsOf('{"NAME": "a", "name": "b", "Name": "c", "ipam": {"DataDir": "/x"}}');
    assert.equal(fields.text("name"), "c");
    assert.equal(fields.section("IPAM")?.text("dataDir"), "/x");
    assert.equal(fields.problem, undefined);
  });

  it("take null for absent, and know that it is there", () => {
    const fields = fieldsOf('{"a": null}');
    assert.deepEqual(
      [fields.text("a"), fields.section("a"), fields.integer("a")],
      [undefined, undefined, undefined],
    );
    assert.deepEqual([fields.list("a"), fields.texts("a"), fields.sections("a")], [[], [], []]);
    assert.equal(fields.labels("a"), undefined);
    assert.deepEqual([fields.has("A"), fields.has("b")], [true, false]);
    assert.equal(fieldsOf("null").has("a"), false);
  });

  it("report the first field of a wrong type by its path and never by its value", () => {
    const fields = fieldsOf('{"ipam": {"routes": [{}, "secret"], "mtu": 1.5, "subnet": 5}}');
    const ipam = fields.section("ipam");
    assert.deepEqual(ipam?.sections("routes").length, 1);
    assert.equal(ipam?.text("subnet"), undefined);
    assert.equal(
      fields.problem?.msg,
      "json: cannot unmarshal string into field ipam.routes[1] of type object",
    );
    assert.equal(fields.problem?.code, 6);
  });

  it("refuse what only looks like a whole number", () => {
    for (const text of ["1.5", "1e400", "9007199254740993", '"1"', "true"]) {
      const fields = fieldsOf(`{"n": ${text}}`);
      assert.equal(fields.integer("n"), undefined, text);
      assert.ok(fields.problem !== undefined, text);
    }
    assert.equal(fieldsOf('{"n": 0}').integer("n"), 0);
  });

  it("read lists of lists", () => {
    const fields = fieldsOf('{"ranges": [[{"subnet": "a"}], null, []]}');
    assert.deepEqual(
      fields.sectionLists("ranges").map((list) => list.map((entry) => entry.text("subnet"))),
      [["a"], [], []],
    );
    assert.equal(fields.problem, undefined);
    const bad = fieldsOf('{"bad": [{}]}');
    bad.sectionLists("bad");
    assert.equal(bad.problem?.msg, "json: cannot unmarshal object into field bad[0] of type list");
  });

  it("keep the keys of labels as they are written", () => {
    const fields = fieldsOf('{"x": {"Berth.dev/IPs": "a", "__proto__": "b", "n": 5}}');
    const labels = fields.labels("x");
    assert.deepEqual(Object.entries(labels ?? {}), [
      ["Berth.dev/IPs", "a"],
      ["__proto__", "b"],
    ]);
  });

  it("are not fooled by keys that objects have anyway", () => {
    const fields = fieldsOf('{"__proto__": {"name": "x"}}');
    assert.equal(fields.text("name"), undefined);
    assert.equal(fields.text("constructor"), undefined);
  });

  it("refuse anything but one object, without quoting it", () => {
    for (const text of [
      "",
      "{",
      "[]",
      "5",
      '"x"',
      '{"a": 1} x',
      '{"a": 1}{"a": 1}',
      '\ufeff{"a": 1}',
      '{"s": "hunter2", b}',
      "{'hunter2': 1}",
    ]) {
      const error = parseFields(text);
      assert.ok(isCniError(error), text);
      assert.equal(error.code, 6);
      assert.ok(error.msg.startsWith("error unmarshall network config: "), error.msg);
      assert.ok(!error.msg.includes("hunter2"), error.msg);
    }
  });
});
