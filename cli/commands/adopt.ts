// SPDX-License-Identifier: Apache-2.0
import { join, resolve } from "node:path";
import { adopt as adoptJournal } from "../../ipam-plugin/agent/journal/adopt.ts";
import { linuxHost, readBootId } from "../../ipam-plugin/agent/journal/host.ts";
import { RESULT_FOLDERS, recordsIn } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { databaseOf } from "../backend/embedded-backend.ts";
import { readStackFile } from "../backend/stack-file.ts";
import { refuseTaken } from "../embedded/data-folder.ts";
import type { Command } from "../terminal/command.ts";
import { DATA } from "../terminal/flags.ts";

/** `berthctl adopt` */
export const adopt: Command = {
  name: "adopt",
  summary: "accept a data folder other than the one that was used since this host booted",
  usage: ["adopt [--data DIR] [--socket PATH] [--yes]"],
  flags: {
    data: DATA,
    socket: { type: "string", value: "PATH", about: "where the CNI plugin finds the agent (as for up)" },
    yes: { type: "boolean", about: "do it; without it, say what would be done and what is up on this host" },
  },
  inCluster: "run `node ipam-plugin/agent/main.js adopt` in the agent's pod (docs/recovery.md)",
  examples: ["berthctl adopt --data ./berth", "berthctl adopt --data ./berth --yes"],
  async run(args, { io, dataDir }) {
    args.expect();
    const socketPath = resolve(args.text("socket") ?? join(dataDir, "agent.sock"));
    // what it knows of the sandboxes that are up, no runtime may have recorded; and its next start would be refused
    refuseTaken(socketPath, readStackFile(dataDir)?.pid);
    const lines = await adoptJournal({
      database: databaseOf(dataDir),
      socketPath,
      bootId: await readBootId(),
      confirmed: args.has("yes"),
      runtimeRecords: recordsIn(RESULT_FOLDERS, linuxHost),
    });
    for (const line of lines) io.stdout.write(`${line}\n`);
    return 0;
  },
};
