// SPDX-License-Identifier: Apache-2.0
// Node's runner follows every promise, to know in which test an error came up that nobody caught. That costs half of the
// processor's time of tests that make millions of them. What it knows without: timers, sockets and all else that is no promise.
import hooks, { AsyncResource } from "node:async_hooks";

const { createHook } = hooks;

if (areFollowed()) await stopFollowing();
else {
  // node:test takes it from here when it is loaded, which must not have been
  hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
  await import("node:test");
  hooks.createHook = createHook;
}

/** A promise that is followed has a number of its own, as all that is followed. */
function areFollowed(): boolean {
  const next = () => new AsyncResource("a number").asyncId();
  const before = next();
  Promise.resolve();
  return next() > before + 1;
}

/**
 * Where files share a process, the runner's hook is there before this is loaded, and nobody can get at it. Node.js follows
 * promises until it counts no hook any more. So one that gains its callbacks while it is there is taken away, and the count
 * has none; then it is put back as one that follows no promises, and the count is right again.
 */
async function stopFollowing(): Promise<void> {
  const hook = createHook({ trackPromises: false });
  hook.enable();
  const callbacks = Object.getOwnPropertySymbols(hook).filter(({ description = "" }) =>
    ["init", "destroy"].includes(description),
  );
  for (const one of callbacks) Reflect.set(hook, one, () => {});
  hook.disable();
  hook.enable();
  for (const one of callbacks) Reflect.set(hook, one, undefined);
  await null; // Node.js lets go of promises only then
  if (areFollowed()) throw new Error("this Node.js counts its hooks otherwise: promises are followed");
}
