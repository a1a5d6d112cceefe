// SPDX-License-Identifier: Apache-2.0

/**
 * At the end of this process nothing is left to do but to end it. By itself Node.js 24 closes its handles first, and was seen never to
 * come to an end of that, at full speed (uv_run in Environment::CleanupHandles, after sockets whose other end had been killed).
 */
export function endWithoutCleanup(): void {
  process.once("exit", () => process.exit());
}
