// SPDX-License-Identifier: Apache-2.0
import { type ChildProcessByStdio, type SpawnOptions, spawn } from "node:child_process";
import type { RequestOptions } from "node:https";
import type { Readable } from "node:stream";
// biome-ignore lint/style/noRestrictedImports: how it asks plugins is bounded
import type { KubeConfig, User } from "@kubernetes/client-node";

type Plugin = ChildProcessByStdio<null, Readable, Readable>;

/** What of client-node runs the plugins of a kubeconfig's users (`exec`). */
interface Runner {
  execFn: (command: string, args: readonly string[] | undefined, options: SpawnOptions) => Plugin;
  applyAuthentication(user: User, options: RequestOptions): Promise<void>;
}

/**
 * A plugin is ended when the `signal` of the options that it is asked for aborts, and that is said: client-node waits for it for ever. It reads
 * nothing from its stdin, which nobody writes to.
 */
export function endsPlugins(config: KubeConfig): KubeConfig {
  for (const one of config["authenticators"]) if ("execFn" in one) bound(one as unknown as Runner);
  return config;
}

function bound(runner: Runner): void {
  const ask = runner.applyAuthentication.bind(runner);
  runner.applyAuthentication = async (user, options) => {
    const { signal } = options;
    if (signal === undefined || signal === null) return await ask(user, options);
    signal.throwIfAborted();
    const { promise: ended, reject } = Promise.withResolvers<never>();
    let plugin: Plugin | undefined;
    const end = () => {
      if (plugin === undefined) return;
      kill(plugin);
      reject(new Error(wordsOf(user, plugin)));
    };
    // whoever is asked next sets its own: before anything is waited for, this one's plugin has begun
    runner.execFn = (command, args, given) => {
      plugin = spawn(command, args ?? [], { ...given, stdio: ["ignore", "pipe", "pipe"] });
      return plugin;
    };
    signal.addEventListener("abort", end);
    try {
      await Promise.race([ask(user, options), ended]);
    } finally {
      signal.removeEventListener("abort", end);
    }
  };
}

/** A process that it has begun, and that outlives it, may keep its pipes: nobody reads them any more. */
function kill(plugin: Plugin): void {
  plugin.kill("SIGKILL");
  plugin.stdout.destroy();
  plugin.stderr.destroy();
}

function wordsOf(user: User, { spawnfile, pid }: Plugin): string {
  return (
    `the plugin ${spawnfile} of the kubeconfig's user ${JSON.stringify(user.name)} did not end in time, ` +
    `and was ended (process ${pid}); run it by hand to see what it waits for`
  );
}
