// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isCniError } from "./errors.ts";
import { atLeast, negotiate, VERSIONS, versionAnswer } from "./versions.ts";

function refusalOf(command: string, text: string) {
  const error = negotiate(command, text);
  assert.ok(isCniError(error), `${command} ${text} is taken`);
  return error;
}

describe("versions", () => {
  it("takes every version that is listed, exactly as it is written", () => {
    for (const version of VERSIONS) assert.equal(negotiate("ADD", version), version);
    for (const text of ["1.0", "0.3", "v1.0.0", "1.0.0-rc1", "1.2.0", "9.9.9", " 1.0.0", "01.0.0"]) {
      const { code, msg, details } = refusalOf("ADD", text);
      assert.equal(code, 1, text);
      assert.equal(msg, "incompatible CNI versions");
      assert.ok(
        details.startsWith(`config is ${JSON.stringify(text)}, plugin supports ["0.1.0" "0.2.0" `),
        details,
      );
    }
  });

  it("has CHECK from 0.4.0, GC and STATUS from 1.1.0", () => {
    for (const [command, least] of [
      ["CHECK", "0.4.0"],
      ["GC", "1.1.0"],
      ["STATUS", "1.1.0"],
    ] as const) {
      for (const version of VERSIONS) {
        if (atLeast(version, least)) {
          assert.equal(negotiate(command, version), version);
        } else {
          const { code, msg } = refusalOf(command, version);
          assert.deepEqual([code, msg], [1, `config version does not allow ${command}`], version);
        }
      }
    }
  });

  it("tells a version that cannot be read from one that is not spoken, where it has to be compared", () => {
    assert.deepEqual(
      [refusalOf("CHECK", "1.x.0"), refusalOf("GC", "1.1.0.0"), refusalOf("STATUS", "")].map(
        ({ code, msg }) => [code, msg],
      ),
      [
        [6, 'failed to convert minor version part "x": not a number'],
        [6, 'invalid version "1.1.0.0": too many parts'],
        [6, 'failed to convert major version part "": not a number'],
      ],
    );
    assert.equal(refusalOf("GC", "9.9.9").msg, "incompatible CNI versions");
    assert.equal(refusalOf("CHECK", "1").msg, "incompatible CNI versions");
  });

  it("answers VERSION on one line", () => {
    const answer = versionAnswer();
    assert.equal(answer.split("\n").length, 2);
    assert.deepEqual(JSON.parse(answer), { cniVersion: "1.1.0", supportedVersions: [...VERSIONS] });
  });
});
