// SPDX-License-Identifier: Apache-2.0
// on.ts MACHINE COMMAND...: runs a command on node-a, node-b or control.
import { Cluster } from "./cluster.ts";
import { StateFolder } from "./state.ts";

const cluster = new Cluster(StateFolder.of(process.env));
const [name = "", ...command] = process.argv.slice(2);
const machine = name === "control" ? cluster.control : cluster.node(name);
const { rc, stdout, stderr } = await machine.run(command.length === 0 ? ["ps", "-ef"] : command);
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = rc;
