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
/** `openssl x509 -req -signkey`, which makes a root of version 1: it has no extensions. */
const FIRST_VERSION = `-----BEGIN CERTIFICATE-----
MIIBGjCBwQIUNiCcq+vkFVW8XAh+f6ULSpjn7y0wCgYIKoZIzj0EAwIwDzENMAsG
A1UEAwwEcm9vdDAgFw0yNjExMjgxODE2NTBaGA8yMTI2MTEwNDE4MTY1MFowDzEN
MAsGA1UEAwwEcm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCPXpxhQgWX1
4RkXZwdPibgIUR8Mozmyb3B6RpmAH3Fs3FL3ABUpuMIiWgylXPlhDFJtkQoW6ajB
SBjRVqLX72cwCgYIKoZIzj0EAwIDSAAwRQIgd6n40yVA8lAxcYW2J43+xRvDBeQz
GB1IBspfIqEAgkkCIQDJeIpiNZfREDXmLdfHFk03kiO8zSPgERFPjWn6aJzu1g==
-----END CERTIFICATE-----
`;
/** `openssl req -x509`, CA:FALSE and for digitalSignature: a client that is trusted by itself. */
const BY_ITSELF = `-----BEGIN CERTIFICATE-----
MIIBhDCCASmgAwIBAgIUUTvvz0loK8NKQ7HFtUcB9HgGis4wCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGcGlubmVkMCAXDTI2MTEyODE4MTY1MFoYDzIxMjYxMTA0MTgx
NjUwWjARMQ8wDQYDVQQDDAZwaW5uZWQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATtCWzuqUtbSrTZpoZKbv2uwHFuMaabGjqGuPNTng9/B0VXJ62uzDxz4hhifZqH
4YXNbFdp5WpXHIQtZjjx/D2po10wWzAdBgNVHQ4EFgQU8WXchvjqcsLyXHgGcFGw
3a6X8qYwHwYDVR0jBBgwFoAU8WXchvjqcsLyXHgGcFGw3a6X8qYwDAYDVR0TAQH/
BAIwADALBgNVHQ8EBAMCB4AwCgYIKoZIzj0EAwIDSQAwRgIhAId3bti6hoDzB5mk
WuEEoUgGf/XXnvfPKbww7GEUwf7SAiEA5dIXhgtuHBNFeoMOW0pV+Asp+3nn0A37
0TpUG519CMI=
-----END CERTIFICATE-----
`;

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

  it("are those that OpenSSL takes for being signed by themselves, too", () => {
    assert.equal(readAuthorities(one + FIRST_VERSION + BY_ITSELF).length, 3);
  });

  for (const { name, text, why } of [
    {
      name: "nothing",
      text: "",
      why: /^the certificates cannot be read: it is empty$/,
    },
    {
      name: "a second one that breaks off",
      text: two.cert + one.slice(0, 200),
      why: /the beginnings of 2 certificates and the ends of 1$/,
    },
    {
      name: "a second one whose first line is damaged",
      text: both.replace("-----\n-----B", "-----\n----B"),
      why: /the beginnings of 1 certificates and the ends of 2$/,
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
