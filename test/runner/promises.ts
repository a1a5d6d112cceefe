// SPDX-License-Identifier: Apache-2.0
// Node's runner follows every promise, to know in which test an error came up that nobody caught. That costs half of the
// processor's time of tests that make millions of them. What it knows without: timers, sockets and all else that is no promise.
import hooks from "node:async_hooks";

const { createHook } = hooks;
// node:test takes it from here when it is loaded, which must not have been
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
await import("node:test");
hooks.createHook = createHook;
