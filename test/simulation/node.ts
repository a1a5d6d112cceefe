// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../../allocator/base/errors.ts";
import { FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Answer } from "../../ipam-plugin/agent/rpc/connection.ts";
import { type Call, NOT_ACCEPTED } from "../../ipam-plugin/agent/rpc/frame.ts";
import { SeededRandom } from "../support/random.ts";
import { Agent } from "./agent.ts";
import { addressesIn, type CniCall, callOf, failureIn, isPlace, type Sandbox } from "./cni-call.ts";
import { NodeJournal } from "./node-journal.ts";
import { NodeSandboxes } from "./node-sandboxes.ts";
import type { Pod } from "./pod.ts";
import { Post, type Process } from "./process.ts";
import type { Happening, Schedule } from "./schedule.ts";
import type { Setting } from "./setting.ts";
import type { Tally } from "./tally.ts";

/** Of failed ADDs, how many are followed by a DEL: runtimes differ. */
const TIDY_SHARE = 0.6;
const SPOOL_POLL_MS = 1_000;
/** A kubelet's between two sandboxes for a pod. */
const BACK_OFF_MS = 10_000;
/** Between the ends of two interfaces of a sandbox, if a plugin is slow. */
const SLOW_STOP_MS = 30_000;
/** Of all ADDs, how many a runtime may give up on. */
const SHORT_TIMEOUT_SHARE = 0.1;

interface NodeOptions {
  readonly name: string;
  readonly schedule: Schedule;
  readonly setting: Setting;
  readonly database: Database;
  /** An empty one. */
  readonly spare: () => Database;
  readonly tally: Tally;
}

/** A host with its kubelet, its runtime and its agent. The journal outlives everything, the rest goes with the power. */
export class Node {
  readonly name: string;
  readonly post: Post;
  readonly pods = new Map<string, Pod>(); // uid -> pod
  agent: Agent | undefined;
  on = true;
  readonly #sandboxes: NodeSandboxes;
  readonly #journal: NodeJournal;
  #boots = 1;
  #bootedAt = 0;
  #stamps = 0;
  readonly #options: NodeOptions;
  readonly #chance: SeededRandom;
  readonly #spool = new Set<Call>();
  readonly #calls = new Set<CniCall>();
  /** Messages of this boot belong to it. */
  #boot = {};

  constructor(options: NodeOptions) {
    this.name = options.name;
    this.#options = options;
    this.#journal = new NodeJournal(options.database, options.spare);
    this.#sandboxes = new NodeSandboxes(options.name);
    this.#chance = new SeededRandom(options.name.charCodeAt(1));
    this.post = new Post(options.schedule, options.name, (process) => {
      this.agent = new Agent(process, this.#agentHost(process), options.setting);
    });
    this.post.start();
  }

  get sandboxes(): readonly Sandbox[] {
    return this.#sandboxes.all;
  }

  /** Not the one that has served since it booted. */
  get hasOtherJournal(): boolean {
    return this.#journal.isOther;
  }

  /**
   * The agent's next life has an empty one, or an older copy: its folder was another one's, or is gone, or a backup was put there,
   * with `/run/berth` or without.
   */
  loseJournal(withMark: boolean): void {
    this.#journal.lose(withMark);
    this.#restart();
  }

  /** A backup of its journal is made, which is what is there when that is lost. */
  copyJournal(): void {
    void this.#options.schedule.busy(this.#journal.copy());
  }

  /** The old one is put back, unless the other has begun to serve: then the node is that one's. */
  findJournal(): void {
    if (this.#journal.find()) this.#restart();
  }

  #restart(): void {
    if (this.post.process === undefined) return; // it is about to start
    this.post.crash();
  }

  get starting(): readonly CniCall[] {
    return [...this.#calls].filter(({ verb, heard }) => verb === "ADD" && heard);
  }

  /** Its kubelet hears of a pod, or of its end. */
  admit(pod: Pod): void {
    this.pods.set(pod.uid, pod);
    this.#startSoon(pod, 0);
  }

  /** Its kubelet looks after every pod that has no sandbox. */
  lookAfterAll(): void {
    for (const pod of this.pods.values()) if (this.currentOf(pod) === undefined) this.#startSoon(pod, 0);
  }

  currentOf(pod: Pod): Sandbox | undefined {
    return this.#sandboxes.currentOf(pod);
  }

  /** A new sandbox for a pod that has none. */
  startSandbox(pod: Pod): void {
    const sandbox = this.#sandboxes.make(pod);
    const call = this.send("ADD", sandbox);
    if (this.#chance.fraction() >= SHORT_TIMEOUT_SHARE) return;
    const ready = () => call.heard && sandbox.phase === "starting";
    const run = () => {
      this.giveUp(call, this.#chance.fraction() < 0.5);
      this.#options.tally.note("given up ADD", "done");
      this.#startSoon(pod, BACK_OFF_MS);
      return "";
    };
    this.#message({ what: () => `the runtime gives up on ADD ${sandbox.id}`, run, ready });
  }

  /** A meta plugin makes the next interface of the pod when the last one is up. */
  #attachNext(sandbox: Sandbox): void {
    const next = this.#sandboxes.attachNext(sandbox);
    if (next !== undefined) this.send("ADD", next);
  }

  /** Those of its container that are there, in either order. */
  #interfacesOf(sandbox: Sandbox): readonly Sandbox[] {
    const all = this.#sandboxes.interfacesOf(sandbox);
    return all.length > 1 && this.#chance.fraction() < 0.5 ? all.toReversed() : all;
  }

  /** The runtime stops the sandbox and says so, one interface after the other; its namespace may go before or after. */
  stopSandbox(sandbox: Sandbox): void {
    const [first = sandbox, ...others] = this.#interfacesOf(sandbox);
    this.#silence(first);
    first.phase = "down";
    if (others.length === 0 && this.#chance.fraction() < 0.5) this.#sandboxes.loseNetns(first);
    this.send("DEL", first);
    if (others.length === 0) return;
    const run = () => {
      this.stopSandbox(first);
      this.#startSoon(first.pod, 0);
      return "";
    };
    const ready = () => others.some(({ phase }) => phase !== "down");
    const afterMs = this.#chance.fraction() < 0.5 ? 0 : SLOW_STOP_MS;
    this.#message({
      what: () => `the runtime stops what is left of ${first.containerID}`,
      run,
      ready,
      afterMs,
    });
  }

  /** It is gone, and nobody says so. */
  loseSandbox(sandbox: Sandbox): void {
    for (const one of [sandbox, ...this.#interfacesOf(sandbox)]) {
      one.phase = "down";
      for (const call of this.#calls) if (call.sandbox === one) call.heard = false;
    }
    this.#sandboxes.loseNetns(sandbox);
  }

  /** Nobody waits for its ADD any more. */
  #silence(sandbox: Sandbox): void {
    if (sandbox.interface === FIRST_INTERFACE) return;
    for (const call of this.#calls) if (call.sandbox === sandbox && call.verb === "ADD") call.heard = false;
  }

  /** The runtime waits no longer for this ADD. Its client is killed, or goes on for nobody. */
  giveUp(call: CniCall, killsClient: boolean): void {
    call.heard = false;
    if (killsClient) call.abort.abort();
    this.stopSandbox(call.sandbox);
  }

  send(verb: CniCall["verb"], sandbox: Sandbox): CniCall {
    const call = callOf(verb, sandbox, this.#stamp());
    this.#calls.add(call);
    const what = () => `${verb} ${sandbox.id} of ${sandbox.pod.name}/${sandbox.pod.uid} arrives`;
    this.#message({ what, run: () => this.#arrive(call) });
    return call;
  }

  /** The power goes: processes, sandboxes, calls and the spool. */
  powerOff(): void {
    const { schedule } = this.#options;
    this.post.crash();
    schedule.drop(this.post); // nobody starts anything on a dead host
    schedule.drop(this.#boot);
    this.#sandboxes.powerOff();
    this.on = false;
    this.agent = undefined;
    this.#journal.powerOff();
    this.#spool.clear();
    this.#calls.clear();
  }

  powerOn(): void {
    this.#boots++;
    this.#boot = {};
    this.#bootedAt = this.#options.schedule.time;
    this.#stamps = 0;
    this.on = true;
    this.post.cut = false;
    this.post.start();
    for (const pod of this.pods.values()) this.#startSoon(pod, 0);
  }

  /** A kubelet starts by itself what it has to run, and again when that failed. */
  #startSoon(pod: Pod, afterMs: number): void {
    if (!this.on) return;
    const ready = () => !pod.terminating && this.pods.has(pod.uid);
    const run = () => {
      if (this.currentOf(pod) === undefined) this.startSandbox(pod);
      return "";
    };
    this.#message({ what: () => `the kubelet looks at pod ${pod.name}/${pod.uid}`, run, ready, afterMs });
  }

  #agentHost(process: Process) {
    return {
      name: this.name,
      database: this.#journal.database,
      mark: this.#journal.markFile(),
      bootId: `boot-${this.#boots}`,
      runtimeRecords: async () => this.#sandboxes.records(),
      host: this.#sandboxes.host(() => this.post.left === process),
      spool: this.#spool,
    };
  }

  /** CLOCK_MONOTONIC of this boot, never twice the same. */
  #stamp(): bigint {
    const ms = Math.floor(this.#options.schedule.time - this.#bootedAt);
    return BigInt(ms) * 1_000_000n + BigInt(++this.#stamps);
  }

  #message(message: Pick<Happening, "what" | "run" | "ready"> & { readonly afterMs?: number }): void {
    const { schedule } = this.#options;
    const { afterMs = 0, ...rest } = message;
    const due = afterMs === 0 ? {} : { due: schedule.time + afterMs };
    schedule.offer({ ...rest, owner: this.#boot, who: this.name, ...due });
  }

  #arrive(call: CniCall): string {
    const { agent } = this;
    if (agent?.serves !== true) return this.#unanswered(call);
    const boot = this.#boot;
    agent.answer(call.call, call.abort).then(
      (answer) => this.#boot === boot && this.#answered(call, answer, agent),
      (error: unknown) => this.#options.setting.invariants.object(`a call threw: ${messageOf(error)}`),
    );
    return "";
  }

  #answered(call: CniCall, answer: Answer | undefined, agent: Agent): void {
    const { verb, sandbox } = call;
    if (answer === undefined) {
      this.#message({ what: () => `${verb} ${sandbox.id} breaks off`, run: () => this.#unanswered(call) });
      return;
    }
    // by the journal of the agent that answered, which may have ended when the answer arrives
    const attached = agent.attachments?.attached().find((one) => isPlace(one, sandbox));
    const fromBlock = attached?.source === "block";
    const run = () => {
      const outcome = verb === "ADD" ? this.#added(call, answer, fromBlock) : this.#deleted(call, answer);
      const delivered = call.heard ? "delivered" : "lost";
      if (agent.process.alive) void settle(answer, delivered);
      this.#calls.delete(call);
      return outcome;
    };
    this.#message({ what: () => `answer to ${verb} ${sandbox.id}`, run });
  }

  #unanswered(call: CniCall): string {
    this.#calls.delete(call);
    if (call.verb === "ADD") return this.#failed(call, "no agent answered");
    this.#spool.add(call.call);
    this.#sandboxes.endNetns(call.sandbox); // the plugin has said yes, and the runtime goes on
    this.#options.tally.note("spooled DEL", "done");
    this.#lookAtSpool();
    return "no agent answered: on the spool";
  }

  /** Until nothing is left: what failed stays on the spool. */
  #lookAtSpool(): void {
    const boot = this.#boot;
    const again = () => this.#boot === boot && this.#lookAtSpool();
    const run = () => {
      const replayed = this.agent?.serves === true ? this.agent.replay() : Promise.resolve();
      if (this.#spool.size > 0) replayed.then(again, again);
      return "";
    };
    this.#message({ what: () => "the agent looks at its spool", run, afterMs: SPOOL_POLL_MS });
  }

  #added(call: CniCall, answer: Answer, fromBlock: boolean): string {
    const { sandbox } = call;
    if (answer.exitStatus !== 0) return this.#failed(call, failureIn(answer));
    const addresses = addressesIn(answer);
    if (!call.heard || sandbox.phase === "down") return `${addresses.join("+")}, for nobody`;
    const again = sandbox.phase === "up";
    sandbox.phase = "up";
    this.#options.tally.note(again ? "repeated ADD" : "ADD", "done");
    sandbox.fromBlock = fromBlock;
    if (fromBlock) this.#options.tally.note("ADD from a block", "done");
    this.#options.setting.invariants.wentUp(sandbox, addresses);
    sandbox.addresses = addresses;
    if (sandbox.interface !== FIRST_INTERFACE) this.#options.tally.note("ADD of a further interface", "done");
    if (!again) this.#attachNext(sandbox);
    return addresses.join("+");
  }

  #failed({ sandbox, heard }: CniCall, why: string): string {
    if (!heard || sandbox.phase !== "starting") return why;
    this.#options.tally.note("ADD", "refused");
    if (this.#chance.fraction() < TIDY_SHARE) this.stopSandbox(sandbox);
    else this.loseSandbox(sandbox);
    this.#startSoon(sandbox.pod, BACK_OFF_MS);
    return why;
  }

  #deleted(call: CniCall, { exitStatus, stdout }: Answer): string {
    const { sandbox } = call;
    if (exitStatus === NOT_ACCEPTED) return this.#unanswered(call);
    if (exitStatus !== 0) this.#options.setting.invariants.object(`DEL ${sandbox.id} failed: ${stdout}`);
    this.#sandboxes.endNetns(sandbox);
    this.#options.tally.note("DEL", "done");
    return "";
  }
}

async function settle(answer: Answer, outcome: "delivered" | "lost"): Promise<void> {
  try {
    await answer.settle?.(outcome);
  } catch {
    // logged by the connection, and nothing more
  }
}
