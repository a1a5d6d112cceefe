// SPDX-License-Identifier: Apache-2.0

/** What ends each part that was started, in the order of the starts. */
export type CleanupStack = (() => void | Promise<void>)[];

/**
 * Puts parts together; `close` ends them in reverse, once however often it is called. When a later part cannot start,
 * what was started is closed again and its error thrown.
 */
export async function withCleanup<T>(
  assemble: (closers: CleanupStack) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const closers: CleanupStack = [];
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= closeAll(closers);
    return closing;
  };
  try {
    return { ...(await assemble(closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function closeAll(closers: CleanupStack): Promise<void> {
  for (const close of closers.reverse()) await close();
}
