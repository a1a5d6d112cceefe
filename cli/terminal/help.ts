// SPDX-License-Identifier: Apache-2.0
import type { Command } from "./command.ts";
import { ETCD_FLAGS, type Flags, withHelp } from "./flags.ts";
import { columns } from "./output.ts";

/** The name that it was called by. */
export type Program = "berthctl" | "kubectl berth";

const EXIT_CODES = [
  "Exit codes: 0 done, 1 refused or defects found, 2 called wrongly or not possible.",
  "",
].join("\n");

const OF_BERTHCTL = [
  "It works on a stack on one host (its data folder), on a cluster, or on the etcd that hosts share:",
  "  --data DIR or $BERTH_DATA                    that data folder",
  "  --kubeconfig FILE, --context NAME            that cluster, with the rights of its user",
  "  --etcd URL[,URL] or $BERTH_ETCD              that etcd (docs/etcd.md); the variable counts before the others",
  "  none of them: $KUBECONFIG, else a stack's data in /var/lib/berth (root) or ~/.local/share/berth (others),",
  "  else ~/.kube/config, else the service account of the pod that it runs in",
  "These flags may stand before the command, too.",
  "Called as kubectl-berth it always works on a cluster. up, down, apply and delete are for data folders.",
  "",
  "Examples:",
  "  berthctl up --detach --data ./berth   (until: berthctl down --data ./berth)",
  "  berthctl apply -f pools.yaml --data ./berth",
  "  berthctl who 10.20.0.51 --data ./berth",
  "  kubectl berth get claims -A           (in a cluster)",
];

const OF_KUBECTL = [
  "It works on the cluster of $KUBECONFIG, else of ~/.kube/config, else of the pod that it runs in, with the",
  "rights of its user. Objects are made, changed and deleted with kubectl itself.",
  "",
  "Examples:",
  "  kubectl berth get claims -A",
  "  kubectl berth who 10.20.0.51",
  "  kubectl berth explain pod/mysql-0 -n shop",
];

/** Those that the program has. */
export function commandsOf(commands: readonly Command[], program: Program): readonly Command[] {
  return commands.filter(({ inCluster }) => program === "berthctl" || inCluster === undefined);
}

/** `berthctl --help`, `kubectl berth --help` */
export function commandList(commands: readonly Command[], program: Program = "berthctl"): string {
  const kubectl = program === "kubectl berth";
  const shown = commandsOf(commands, program);
  return [
    `${program} manages fixed IP addresses of pods: pools, claims, and who has which address.`,
    "",
    kubectl
      ? "Usage: kubectl berth COMMAND [flags]"
      : "Usage: berthctl COMMAND [flags]     (or: kubectl berth COMMAND [flags])",
    "",
    "Commands:",
    columns(shown.map((command) => [`  ${command.name}`, wordsOf(command, program).summary])),
    ...(kubectl ? OF_KUBECTL : OF_BERTHCTL),
    "",
    `${program} COMMAND --help describes a command.`,
    EXIT_CODES,
  ].join("\n");
}

function wordsOf(command: Command, program: Program): Pick<Command, "summary" | "usage"> {
  return program === "kubectl berth" ? (command.asKubectl ?? command) : command;
}

/** Flags of data folders and of etcd, which `kubectl berth` refuses. */
const NOT_OF_KUBECTL: ReadonlySet<string> = new Set([
  ...["data", "wait", "even-if-alive"],
  ...Object.keys(ETCD_FLAGS),
]);

/** Those of the command that the program takes. */
export function flagsOf({ flags }: Command, program: Program): Flags {
  const all = Object.entries(withHelp(flags));
  return Object.fromEntries(all.filter(([name]) => program === "berthctl" || !NOT_OF_KUBECTL.has(name)));
}

/** `berthctl COMMAND --help` */
export function helpOf(command: Command, program: Program = "berthctl"): string {
  const kubectl = program === "kubectl berth";
  const { summary, usage } = wordsOf(command, program);
  const flags = Object.entries(flagsOf(command, program)).map(([name, { short, value, about }]) => {
    const spelling = `${short === undefined ? "    " : `-${short}, `}--${name}`;
    return [`  ${spelling}${value === undefined ? "" : ` ${value}`}`, about];
  });
  return [
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    "",
    ...usage
      .map((line) => (kubectl ? line.replace("--data DIR | ", "") : line))
      .map((line, i) => `${i === 0 ? "Usage:" : "      "} ${program} ${line}`),
    "",
    "Flags:",
    columns(flags),
    "Examples:",
    ...command.examples.map((example) => `  ${example.replace("berthctl", program)}`),
    "",
    EXIT_CODES,
  ].join("\n");
}
