// SPDX-License-Identifier: Apache-2.0
import { readConfig } from "../../cni/config.ts";
import { readEnvironment } from "../../cni/environment.ts";
import { cniError, fromThrown, isCniError } from "../../cni/errors.ts";
import { NEWEST, VERSIONS, versionAnswer } from "../../cni/versions.ts";
import { add } from "../add/add.ts";
import type { Answer, Handler } from "../rpc/connection.ts";
import type { Call } from "../rpc/frame.ts";
import { errorVersion, fail, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { status } from "./status.ts";

type Verb = (request: CniRequest, parts: AgentServices) => Promise<Answer>;
type Command = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS";

/** CNI_COMMAND -> what it does; VERSION is answered before stdin is looked at. */
const VERBS: Readonly<Record<Command, Verb>> = { ADD: add, DEL: del, CHECK: check, GC: gc, STATUS: status };

const ABOUT = `CNI IPAM plugin berth\nCNI protocol versions supported: ${VERSIONS.join(", ")}\n`;

/** Runtimes take a DEL that fails with these words for one that succeeded. A value that is quoted may bring them along. */
const FORGIVING = /not found|no such file or directory/gi;

/** Answers calls and counts them. */
export function createHandler(services: AgentServices): Handler {
  const { clock, metrics } = services;
  return async (call, signal) => {
    const began = clock.monotonic();
    const command = call.env.get("CNI_COMMAND") ?? "";
    const verb = isCommand(command) || command === "VERSION" ? command : "other";
    const given = await answer(call, signal, services);
    const reply = verb === "DEL" ? withoutForgiving(given) : given;
    const outcome = reply.exitStatus === 0 ? "succeeded" : "failed";
    metrics.increment("berth_cni_requests_total", { verb, outcome, code: codeOf(reply) });
    metrics.observe("berth_cni_duration_seconds", (clock.monotonic() - began) / 1000, { verb });
    return reply;
  };
}

/** The number of the CNI error; empty without one. */
function codeOf({ exitStatus, stdout }: Answer): string {
  return exitStatus === 0 ? "" : (/"code":\s*(\d+)/.exec(stdout)?.[1] ?? "");
}

function withoutForgiving(answer: Answer): Answer {
  return answer.exitStatus === 0
    ? answer
    : { ...answer, stdout: answer.stdout.replaceAll(FORGIVING, "missing") };
}

/** The order of the checks is that of the reference library: environment, stdin, command, version. */
async function answer(call: Call, signal: AbortSignal, services: AgentServices): Promise<Answer> {
  const request = readRequest(call, signal);
  if (!("config" in request)) return request;
  const { invocation, config } = request;
  try {
    if (isCommand(invocation.command)) return await VERBS[invocation.command](request, services);
    const error = cniError("INVALID_ENVIRONMENT", `unknown CNI_COMMAND: ${invocation.command}`);
    return fail(errorVersion(config.fields), error);
  } catch (error) {
    const { containerID, ifname, command } = invocation;
    services.log.error("call failed", { verb: command, containerID, interface: ifname, error });
    return fail(errorVersion(config.fields), fromThrown(error));
  }
}

/** The call read, or the answer to one that cannot be read or asks for nothing of this node. */
export function readRequest(call: Call, signal: AbortSignal): CniRequest | Answer {
  const command = call.env.get("CNI_COMMAND") ?? "";
  if (command === "") return succeed("", ABOUT);
  const invocation = readEnvironment(call.env);
  if (isCniError(invocation)) return fail(NEWEST, invocation);
  if (command === "VERSION") return succeed(versionAnswer());
  const config = readConfig(call.stdin.toString("utf8"));
  if (isCniError(config)) return fail(NEWEST, config);
  return { call, invocation, config, signal };
}

function isCommand(text: string): text is Command {
  return Object.hasOwn(VERBS, text);
}
