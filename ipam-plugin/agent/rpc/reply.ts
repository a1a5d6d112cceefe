// SPDX-License-Identifier: Apache-2.0
import { type CniError, errorAnswer } from "../../cni/errors.ts";
import type { Fields } from "../../cni/json-fields.ts";
import { isSupported, NEWEST } from "../../cni/versions.ts";
import { NOT_ACCEPTED, type Reply } from "./frame.ts";

/** Success. Only ADD and VERSION may say anything on stdout: a stray byte breaks the caller (SPEC section 5). */
export function succeed(stdout = "", stderr = ""): Reply {
  return { exitStatus: 0, stdout, stderr };
}

/** The error goes to stdout, whatever one sentence of the SPEC says of stderr: that is where libcni reads it. */
export function fail(cniVersion: string, error: CniError): Reply {
  return { exitStatus: 1, stdout: errorAnswer(cniVersion, error), stderr: "" };
}

/** Nothing was done: the CNI binary puts a DEL on its spool and succeeds. */
export function notAccepted(cniVersion: string, error: CniError): Reply {
  return { ...fail(cniVersion, error), exitStatus: NOT_ACCEPTED };
}

/** The version to put into an error: the configuration's if it is spoken here. */
export function errorVersion(fields: Fields): string {
  const text = fields.text("cniVersion") ?? "";
  return isSupported(text) ? text : NEWEST;
}
