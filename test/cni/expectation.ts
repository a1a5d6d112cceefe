// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Run } from "./plugin.ts";

/** What a step of cases.json expects. */
export interface Expectation {
  readonly rc?: number;
  readonly stdout?: string;
  readonly stderrContains?: string;
  readonly stderrEmpty?: boolean;
  readonly code?: number;
  readonly codeIn?: readonly number[];
  readonly msg?: string;
  readonly msgPrefix?: string;
  readonly details?: string;
  readonly detailsContains?: string;
  readonly ips?: readonly string[];
  readonly ip4?: string;
  readonly routes?: readonly unknown[];
  readonly dns?: object;
  readonly json?: object;
  readonly jsonHas?: string;
  readonly anyOf?: readonly Expectation[];
}

interface Ip {
  readonly address?: string;
  readonly ip?: string;
  readonly gateway?: string;
}

/** The parts of results and errors that are looked at. */
interface Output {
  readonly code?: number;
  readonly msg?: string;
  readonly details?: string;
  readonly ips?: readonly Ip[];
  readonly ip4?: Ip;
  readonly routes?: readonly unknown[];
  readonly dns?: object;
}

/** What Go plugins say of any error without a code: the code is worth nothing, the text may be ours. */
const UNTYPED = 999;

/** Asserts every property that the expectation has. `ownText`: error texts are not compared. */
export function assertMeets(run: Run, expected: Expectation, ownText: boolean): void {
  if (expected.anyOf !== undefined) {
    assertMeetsOne(run, expected.anyOf, ownText);
    return;
  }
  const said = `\nstdout: ${run.stdout}\nstderr: ${run.stderr}`;
  assert.equal(run.rc, expected.rc, said);
  if (expected.stdout !== undefined) assert.equal(run.stdout, expected.stdout);
  if (expected.stderrEmpty === true) assert.equal(run.stderr, "");
  if (expected.stderrContains !== undefined) assert.ok(run.stderr.includes(expected.stderrContains), said);
  if (run.stdout === "") return;
  const output: Output = JSON.parse(run.stdout);
  if (run.rc !== 0) assertError(output, expected, ownText);
  else assertResult(output, expected);
}

function assertMeetsOne(run: Run, choices: readonly Expectation[], ownText: boolean): void {
  const failures: unknown[] = [];
  for (const choice of choices) {
    try {
      assertMeets(run, choice, ownText);
      return;
    } catch (error) {
      failures.push(error);
    }
  }
  throw failures[0];
}

function assertError(output: Output, expected: Expectation, ownText: boolean): void {
  const { code = 0, msg = "", details = "" } = output;
  assert.ok(msg !== "", "an error has words");
  assert.ok(code > 0 && code !== 3, "an error has a code, and not the one that says no DEL is needed");
  if (expected.code !== undefined && expected.code !== UNTYPED) assert.equal(code, expected.code, msg);
  if (expected.codeIn !== undefined) assert.ok(expected.codeIn.includes(code), `code ${code}`);
  if (ownText) return;
  if (expected.msg !== undefined) {
    if (expected.code === UNTYPED)
      assert.ok(msg.includes(expected.msg), `${msg}\ndoes not have\n${expected.msg}`);
    else assert.equal(msg, expected.msg);
  }
  if (expected.msgPrefix !== undefined) {
    assert.ok(msg.startsWith(expected.msgPrefix), `${msg}\ndoes not begin with\n${expected.msgPrefix}`);
  }
  if (expected.details !== undefined) assert.equal(details, expected.details);
  if (expected.detailsContains !== undefined) assert.ok(details.includes(expected.detailsContains), details);
}

function assertResult(output: Output, expected: Expectation): void {
  if (expected.json !== undefined) assert.deepEqual(withoutEmptyDns(output), withoutEmptyDns(expected.json));
  if (expected.jsonHas !== undefined) assert.ok(Object.hasOwn(output, expected.jsonHas));
  if (expected.ips !== undefined) assert.deepEqual(output.ips?.map(textOf), expected.ips);
  if (expected.ip4 !== undefined) assert.equal(output.ip4 && textOf(output.ip4), expected.ip4);
  if (expected.routes !== undefined) assert.deepEqual(output.routes, expected.routes);
  if (expected.dns !== undefined) assert.deepEqual(output.dns, expected.dns);
}

function textOf({ address, ip, gateway }: Ip): string {
  return `${address ?? ip}|${gateway ?? ""}`;
}

/** `dns: {}` and no `dns` mean the same. */
function withoutEmptyDns(value: object): object {
  return Object.fromEntries(
    Object.entries(value).filter(([key, entry]) => key !== "dns" || Object.keys(entry).length > 0),
  );
}
