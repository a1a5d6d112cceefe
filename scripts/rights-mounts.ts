// SPDX-License-Identifier: Apache-2.0

/** Volume of a pod -> what it is, and why it is there. */
type Volumes = Readonly<Record<string, readonly [what: string, why: string]>>;

const AGENT: Volumes = {
  run: [
    "`/run/berth` of the node",
    "the socket that the plugin calls, and what the plugin leaves there for an agent that is away",
  ],
  data: [
    "`agent.dataDir` of the node",
    "the journal: which sandbox has which addresses; what V8 has compiled of the agent",
  ],
  netns: ["`agent.netnsDir` of the node", "whether a sandbox's network namespace is still there"],
  "cni-results": [
    "`/var/lib/cni` of the node",
    "what the runtime says of sandboxes, for an agent without its journal",
  ],
  "cni-bin": ["`cni.binDir` of the node, with `cni.install`", "the plugin, which the runtime runs as root"],
  whereabouts: [
    "`whereabouts.d` in `cni.confDir`, if `cni.aliases` has `whereabouts`",
    "what its networks leave out",
  ],
  "cni-conf": ["`cni.confDir` of the node, with `cni.conflist`", "the network's configuration"],
  etcd: [
    "the Secret `agent.etcdSecret`, if set",
    "the certificates for networks whose addresses are in etcd",
  ],
};

const WEBHOOK: Volumes = {
  tls: [
    "the Secret of the certificate, unless Berth is its own authority",
    "the certificate that it serves, with its key",
  ],
  metrics: ["the Secret `webhook.metricsSecret`, if set", "the token for metrics"],
};

const HEAD = `
## Folders of the node and Secrets that pods mount

No role says this: who runs code in a pod has what is mounted into it. The agent's container runs as root, with no capabilities but those of \`agent.capabilities\` (and SYS_PTRACE with \`agent.hostPID\`), on the node's network. Whoever
runs code there can write the folders that it may write, and so have root of the node run another plugin. The issuer mounts nothing.

| pods of | have | may | why |
|---|---|---|---|
`;

/** The section about mounts, from the templates of the chart; throws for a volume that nobody explains, and the other way round. */
export function mountsSection(agent: string, webhook: string): string {
  const rows = [...rowsOf("berth-agent", agent, AGENT), ...rowsOf("berth-webhook", webhook, WEBHOOK)];
  return `${HEAD}${rows.join("\n")}\n`;
}

function rowsOf(account: string, template: string, volumes: Volumes): readonly string[] {
  const found = [...template.matchAll(/- \{ name: ([a-z-]+), (?:hostPath|secret): /g)].map(
    ([, name = ""]) => name,
  );
  for (const name of found)
    if (!(name in volumes)) throw new Error(`${account}: nobody says why it has the volume ${name}`);
  return Object.entries(volumes).map(([name, [what, why]]) => {
    if (!found.includes(name)) throw new Error(`${account} has no volume ${name}`);
    const mounts = [...template.matchAll(new RegExp(`- \\{ name: ${name}, mountPath: .*`, "g"))];
    const isRead = mounts.every(([line]) => line.includes("readOnly: true"));
    return `| ${account} | ${what} | ${isRead ? "read" : "read, write"} | ${why} |`;
  });
}
