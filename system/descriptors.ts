// SPDX-License-Identifier: Apache-2.0
import { closeSync, openSync } from "node:fs";
import { errnoOf } from "./path-error.ts";

/** Whether this process, and its host, have so many file descriptors left at this moment. */
export function hasDescriptors(count: number): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync("/", "r"));
    return true;
  } catch (error) {
    return !["EMFILE", "ENFILE"].includes(errnoOf(error) ?? "");
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}
