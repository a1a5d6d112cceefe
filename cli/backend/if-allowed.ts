// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";

/** What `read` gives; undefined, or `otherwise`, if this user may not read it: a right to see pods need not include the rest of the cluster. */
export async function ifAllowed<T>(read: () => Promise<T>): Promise<T | undefined>;
export async function ifAllowed<T, E>(read: () => Promise<T>, otherwise: E): Promise<T | E>;
export async function ifAllowed<T, E>(read: () => Promise<T>, otherwise?: E): Promise<T | E | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isForbidden(error)) return otherwise;
    throw error;
  }
}

/** This user may not do that. */
export function isForbidden(error: unknown): boolean {
  return error instanceof BerthError && error.code === "STORE_READ_ONLY";
}
