// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { readAuthorities } from "./ca-bundle.ts";
import { issueAuthority, issueClient } from "./issue.ts";

const clock = new ManualClock();
const [one, two] = [(await issueAuthority(clock)).cert, await issueAuthority(clock)];
const client = (await issueClient(two, { name: "a", organization: "b" }, clock)).cert;
const both = two.cert + one;

describe("authorities that each count", () => {
  for (const { name, text } of [
    { name: "one after the other", text: both },
    { name: "without a line's end between them", text: two.cert.trimEnd() + one },
    { name: "with words around them", text: `# the new one\n${two.cert}\n# the old one\n${one}\n` },
    { name: "with the line ends of Windows", text: both.replaceAll("\n", "\r\n") },
    {
      name: "called as OpenSSL calls some",
      text: two.cert + one.replaceAll("CERTIFICATE", "X509 CERTIFICATE"),
    },
  ]) {
    it(`are read ${name}`, () => {
      assert.equal(readAuthorities(text).map(String).join(""), both);
    });
  }

  for (const { name, text, why } of [
    {
      name: "nothing",
      text: "",
      why: /^the certificates cannot be read: it has the beginnings of 0 and the ends of 0$/,
    },
    {
      name: "a second one that breaks off",
      text: two.cert + one.slice(0, 200),
      why: /the beginnings of 2 and the ends of 1$/,
    },
    {
      name: "a second one whose first line is damaged",
      text: both.replace("-----\n-----B", "-----\n----B"),
      why: /the beginnings of 1 and the ends of 2$/,
    },
    {
      name: "a second one with bytes that are none",
      text: two.cert + one.replace(/\n.{10}/, "\n!!!!!"),
      why: /^certificate 2 of 2 cannot be read: /,
    },
    {
      name: "a client's certificate",
      text: both + client,
      why: /^certificate 3 of 3 is not that of an authority$/,
    },
  ]) {
    it(`are refused as a whole with ${name}`, () => {
      assert.throws(() => readAuthorities(text), { code: "CERTIFICATE_INVALID", message: why });
    });
  }
});
