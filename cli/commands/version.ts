// SPDX-License-Identifier: Apache-2.0
import manifest from "../../package.json" with { type: "json" };
import type { Command } from "../terminal/command.ts";

/** `berthctl version` */
export const version: Command = {
  name: "version",
  summary: "print the version",
  onlyReads: true,
  usage: ["version"],
  flags: {},
  examples: ["berthctl version"],
  async run(args, { io }) {
    args.expect();
    io.stdout.write(`berthctl ${manifest.version}\n`);
    return 0;
  },
};
