// SPDX-License-Identifier: Apache-2.0
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { BerthError, messageOf } from "../allocator/base/errors.ts";
import { nearestWord } from "../allocator/base/nearest-word.ts";
import { describePathError } from "../system/path-error.ts";
import { reportError } from "./apply/report.ts";
import { databaseOf } from "./backend/embedded-backend.ts";
import { adopt } from "./commands/adopt.ts";
import { apply } from "./commands/apply.ts";
import { check } from "./commands/check.ts";
import { remove } from "./commands/delete.ts";
import { down } from "./commands/down.ts";
import { explain } from "./commands/explain.ts";
import { fence } from "./commands/fence.ts";
import { get } from "./commands/get.ts";
import { importCommand } from "./commands/import.ts";
import { release } from "./commands/release.ts";
import { reserve } from "./commands/reserve.ts";
import { up } from "./commands/up.ts";
import { version } from "./commands/version.ts";
import { who } from "./commands/who.ts";
import { requirePrivate } from "./embedded/require-private-folder.ts";
import { type Arguments, readArguments } from "./terminal/arguments.ts";
import type { Command, CommandContext, ExitCode } from "./terminal/command.ts";
import { ETCD_FLAGS, usageError, waitMsOf } from "./terminal/flags.ts";
import { commandList, commandsOf, flagsOf, helpOf, type Program } from "./terminal/help.ts";
import { commandCalled } from "./terminal/other-words.ts";
import { printable } from "./terminal/output.ts";
import {
  type EnvDefaults,
  type EtcdTarget,
  etcdOf as etcdNamed,
  NO_CLUSTER,
  targetOf,
} from "./terminal/target.ts";

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [
  up,
  down,
  apply,
  remove,
  get,
  who,
  explain,
  check,
  release,
  reserve,
  adopt,
  fence,
  importCommand,
  version,
];

/** Runs `berthctl` with the arguments behind its name. Never throws: faults are printed, one line each. */
export async function run(argv: readonly string[], commandContext: CommandContext): Promise<ExitCode> {
  try {
    return await dispatch(argv, commandContext);
  } catch (error) {
    reportError(commandContext.io, oneLine(error));
    return 2;
  }
}

async function dispatch(argv: readonly string[], commandContext: CommandContext): Promise<ExitCode> {
  const [name = "--help", ...rest] = withCommandFirst(argv);
  const { stdout } = commandContext.io;
  const program: Program = commandContext.setting?.kubectl === true ? "kubectl berth" : "berthctl";
  if (name === "help" && rest[0] !== undefined) return await dispatch([rest[0], "--help"], commandContext);
  if (name === "help" || name === "--help" || name === "-h") {
    stdout.write(commandList(COMMANDS, program));
    return argv.length === 0 ? 2 : 0;
  }
  const command = COMMANDS.find((known) => known.name === (name === "--version" ? "version" : name));
  if (command === undefined) throw unknownCommand(name, program);
  if (command.inCluster !== undefined && program === "kubectl berth") {
    const place = command.flags["data"] === undefined ? "hosts that share an etcd" : "a data folder";
    throw usageError(`kubectl berth has no ${command.name}, which is for ${place}; ${command.inCluster}`);
  }
  if (command.onlyReads === true) commandContext.onlyReads?.();
  const args = readArguments(command, rest, flagsOf(command, program));
  if (args.has("help")) {
    stdout.write(helpOf(command, program));
    return 0;
  }
  const context = placed(command, args, commandContext);
  if (usesFolder(command, context)) await requirePrivate(context.dataDir);
  return await command.run(args, context);
}

/** A host that shares an etcd has a data folder, too. */
function usesFolder({ name, flags }: Command, { cluster, etcd }: CommandContext): boolean {
  return flags["data"] !== undefined && cluster === undefined && (etcd === undefined || name === "up");
}

/** Flags that say where, which may stand before the command. */
const PLACES = /^--(?:data|kubeconfig|context|wait|etcd[-a-z]*)(?:=|$)/;

/** `berthctl --etcd URL get claims` is what it is with the flags at the end. */
function withCommandFirst(argv: readonly string[]): readonly string[] {
  let taken = 0;
  while (PLACES.test(argv[taken] ?? "")) taken += argv[taken]?.includes("=") === true ? 1 : 2;
  const [name, ...rest] = argv.slice(taken);
  return taken === 0 || name === undefined ? argv : [name, ...argv.slice(0, taken), ...rest];
}

/** The context of this call: its data folder, and its cluster if it names one. */
function placed(command: Command, args: Arguments, commandContext: CommandContext): CommandContext {
  const [data, kubeconfig, context] = [args.text("data"), args.text("kubeconfig"), args.text("context")];
  const dataDir = data === undefined ? commandContext.dataDir : resolve(data);
  const etcd = command.flags["etcd"] === undefined ? undefined : etcdOf(command, args, commandContext);
  if (etcd !== undefined) {
    if (args.text("etcd") === undefined) remark(commandContext, besideEtcd(command, etcd, commandContext));
    return { ...commandContext, dataDir, etcd };
  }
  const setting = commandContext.setting ?? NO_CLUSTER;
  if (command.flags["kubeconfig"] === undefined) {
    if (data === undefined) remark(commandContext, besideKubeconfig(command, dataDir, setting));
    return onFolder(command, { ...commandContext, dataDir });
  }
  const folder = { dataDir, used: () => existsSync(databaseOf(dataDir)) };
  const cluster = targetOf({ data, kubeconfig, context }, setting, folder);
  const unsaid = data === undefined && cluster === undefined && setting.kubeconfigs.length > 0;
  if (unsaid) remark(commandContext, beside(dataDir, setting));
  const wait = args.text("wait");
  if (cluster !== undefined && wait !== undefined)
    throw usageError("--wait is for the stack of a data folder; in a cluster nothing has to start first");
  if (cluster !== undefined) return { ...commandContext, dataDir, cluster };
  const waitMs = wait === undefined ? {} : { waitMs: waitMsOf(wait) };
  return onFolder(command, { ...commandContext, dataDir, ...waitMs });
}

function remark({ io }: CommandContext, words: string | undefined): void {
  if (words !== undefined) io.stderr.write(`${printable(words)}\n`);
}

/** Nothing will come to be where something else than a folder is, however long one waits. */
function onFolder({ flags }: Command, commandContext: CommandContext): CommandContext {
  if (flags["data"] === undefined || !isOtherThanFolder(commandContext.dataDir)) return commandContext;
  throw usageError(
    `${commandContext.dataDir} is not a folder; name a stack's data folder with --data or BERTH_DATA`,
  );
}

function isOtherThanFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
  } catch {
    return false; // whoever opens it says why it cannot be seen
  }
}

/** A host that shares an etcd has a data folder too, and is one of many only if a flag says so. */
function etcdOf(command: Command, args: Arguments, { setting }: CommandContext): EtcdTarget | undefined {
  const text = (flag: string) => args.text(flag);
  if (setting?.kubectl === true) {
    const said = Object.keys(ETCD_FLAGS).find((flag) => text(flag) !== undefined);
    if (said === undefined) return undefined;
    throw usageError(
      `kubectl berth is for the cluster and has no --${said}; use berthctl for the etcd of other hosts`,
    );
  }
  if (command.name !== "up") return etcdNamed(text, setting?.etcd);
  return etcdNamed((flag) => (flag === "data" ? undefined : text(flag)), undefined);
}

/** Two places may be meant, and nobody said which. */
function beside(dataDir: string, { dataNamed, kubeconfigs }: EnvDefaults): string {
  const why = dataNamed ? "BERTH_DATA names it" : "a stack has been there";
  return `on the data folder ${dataDir} (${why}), not on the cluster of ${kubeconfigs.join(", ")}: say --data or --context to choose`;
}

/** Commands of data folders that are typed for a cluster, too: there kubectl has them. */
const OF_KUBECTL: readonly Command[] = [apply, remove];

/** Somebody who works on a cluster would wait for a stack that nobody starts. */
function besideKubeconfig(
  command: Command,
  dataDir: string,
  { dataNamed, kubeconfigNamed, kubeconfigs }: EnvDefaults,
): string | undefined {
  if (dataNamed || !kubeconfigNamed || !OF_KUBECTL.includes(command)) return undefined;
  return `on the data folder ${dataDir}, not on the cluster of ${kubeconfigs.join(", ")} (KUBECONFIG): for that, ${command.inCluster}`;
}

/** The same of BERTH_ETCD; undefined where no other variable names a place of the command's. */
function besideEtcd(
  { flags }: Command,
  { urls }: EtcdTarget,
  { dataDir, setting = NO_CLUSTER }: CommandContext,
): string | undefined {
  const others = [
    ...(setting.dataNamed && flags["data"] !== undefined
      ? [{ what: `the data folder ${dataDir} (BERTH_DATA)`, flag: "--data" }]
      : []),
    ...(setting.kubeconfigNamed && flags["kubeconfig"] !== undefined
      ? [{ what: `the cluster of ${setting.kubeconfigs.join(", ")} (KUBECONFIG)`, flag: "--context" }]
      : []),
  ];
  if (others.length === 0) return undefined;
  const not = others.map(({ what }) => what).join(" or ");
  const choose = ["--etcd", ...others.map(({ flag }) => flag)].join(" or ");
  return `on the etcd ${urls} (BERTH_ETCD names it), not on ${not}: say ${choose} to choose`;
}

function unknownCommand(name: string, program: Program): BerthError {
  const names = commandsOf(COMMANDS, program).map((command) => command.name);
  // a flag that says where, and nothing behind it
  if (PLACES.test(name))
    return usageError(`name a command behind ${name.split("=", 1)[0]}; there are ${names.join(", ")}`);
  if (/^--?[a-z]/i.test(name))
    return usageError(
      `${name} stands behind the command, as in: ${program} COMMAND ${name}; there are ${names.join(", ")}`,
    );
  const near = commandCalled(name, names) ?? nearestWord(name, names);
  const advice = near === undefined ? `there are ${names.join(", ")}` : `did you mean ${near}?`;
  return usageError(`there is no command ${JSON.stringify(name)}; ${advice}`);
}

/** The disk and its rights are not ours. A fault of ours comes with the place it happened at, for the report of the defect. */
function oneLine(error: unknown): string {
  if (error instanceof BerthError) return error.message;
  const path = describePathError(error);
  if (path !== undefined) return path;
  const place = error instanceof Error ? /\n\s+at (.*)/.exec(error.stack ?? "")?.[1] : undefined;
  return `${messageOf(error)}; this is a defect of berthctl${place === undefined ? "" : ` (${place})`}`;
}
