// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Refusal } from "../../../allocator/base/errors.ts";
import { noopLogger, type Random } from "../../../allocator/base/ports.ts";
import { parseAddress } from "../../../allocator/ip/address.ts";
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { parseHost } from "../../cni/requested.ts";
import type {
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  ClaimSource,
  NoClaim,
  RequireOurs,
  SandboxEnd,
  SandboxNotice,
} from "../claims/claim-source.ts";
import { createHandler } from "../commands/dispatch.ts";
import type { Host, Presence } from "../journal/host.ts";
import { BLOCK_STEPS, BLOCKS } from "../journal/owned-blocks.ts";
import type { Answer, Handler, Outcome } from "../rpc/connection.ts";
import { type AgentServices, createServices } from "../services/services.ts";
import { PlainBlocks } from "./plain-blocks.ts";

/** Takes the middle, always. */
export const middling: Random = { token: () => "aaaaaaaaaaaaaaaaaaaaaaaaaa", fraction: () => 0.5 };

/** A host on which exactly these paths exist. */
export class PlainHost implements Host {
  readonly present = new Set<string>();
  readonly unknown = new Set<string>();
  readonly files = new Map<string, string>(); // path -> text

  /** How often what is at the path was made anew. */
  readonly renewals = new Map<string, number>();

  async look(path: string, was?: string): Promise<Presence> {
    if (this.unknown.has(path)) return "unknown";
    const now = await this.identity(path);
    return now === undefined || (was !== undefined && was !== now) ? "gone" : "present";
  }

  async identity(path: string): Promise<string | undefined> {
    return this.present.has(path) ? `${path} ${this.renewals.get(path) ?? 0}` : undefined;
  }

  /** Paths whose processes are gone, and the namespaces that processes are in. */
  readonly ended = new Set<string>();
  inUse: ReadonlySet<string> | undefined;

  hasProcessEnded(path: string): boolean {
    return this.ended.has(path);
  }

  async namespacesInUse(): Promise<ReadonlySet<string> | undefined> {
    return this.inUse;
  }

  async read(path: string): Promise<string> {
    const text = this.files.get(path);
    if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
    return text;
  }
}

/** What a claim gives: `10.0.0.1/24` each. */
export function claimResult(claim: string, ...hosts: readonly string[]): ClaimResult {
  const addresses = hosts.map((text) => parseHost(text) ?? assert.fail(text));
  return { kind: "claimed", claim, addresses, routes: [], dns: {} };
}

/** Answers what the test says, pod by pod, and remembers what it was asked and told. */
export class ScriptedClaims implements ClaimSource {
  readonly answers = new Map<string, ClaimResult | Refusal | Error>(); // namespace/name of the pod -> answer
  /** Of a claim that names several; then the answer for an interface may stand under namespace/name@interface. */
  interfaces: readonly string[] | undefined;
  readonly asked: AttachRequest[] = [];
  readonly assigned: AttachRequest[] = [];
  readonly reported: SandboxEnd[] = [];
  readonly sandboxes = new Map<string, ClaimAttachment>(); // claim -> the one that its status has
  /** Sandboxes that were there at the start. */
  readonly known: SandboxNotice[] = [];
  /** What counts as in use, and what of it was said to be absent. */
  used: readonly string[] = [];
  readonly freed: string[] = [];
  /** What befalls while `absent` reads the claim. */
  reading: (() => Promise<void>) | undefined;
  /** How often `detached` was called. */
  attempts = 0;
  /** What `detached` throws, while it is set. */
  fault: Error | undefined;
  /** The revision at which `find` has made the claim; absent: it was there. */
  made: string | undefined;
  /** What `find` waits for. */
  finding: Promise<void> = Promise.resolve();
  /** What `attach` waits for. */
  gate: Promise<void> = Promise.resolve();
  /** Run when `attach` has given the claim to the sandbox. */
  onAttach: (() => void) | undefined;
  /** What `detached` waits for. */
  telling: Promise<void> = Promise.resolve();

  async find(request: AttachRequest, _signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    this.asked.push(request);
    await this.finding;
    const answer = this.#answerTo(request);
    if (answer.kind !== "claimed") return answer;
    const named = this.interfaces === undefined ? {} : { interfaces: this.interfaces };
    const found = { kind: "found", claim: answer.claim ?? "", token: "", ...named } as const;
    return this.made === undefined ? found : { ...found, made: this.made };
  }

  async attach(
    _found: ClaimMatch,
    request: AttachRequest,
    _signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    this.assigned.push(request);
    await this.gate;
    this.onAttach?.();
    return this.#answerTo(request);
  }

  #answerTo(request: AttachRequest): ClaimResult | NoClaim | Refusal {
    const pod = `${request.pod.namespace}/${request.pod.name}`;
    const own = this.answers.get(`${pod}@${request.attachment.interface}`);
    const answer = own ?? this.answers.get(pod) ?? { kind: "unclaimed" };
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async attached(notice: SandboxNotice): Promise<void> {
    this.known.push(notice);
  }

  async detached(notice: SandboxEnd): Promise<void> {
    this.attempts++;
    await this.telling;
    if (this.fault !== undefined) throw this.fault;
    this.reported.push(notice);
  }

  async lastSandboxes(claim: string): Promise<readonly ClaimAttachment[]> {
    const sandbox = this.sandboxes.get(claim);
    return sandbox === undefined ? [] : [sandbox];
  }

  inUse(): readonly string[] {
    return this.used;
  }

  async absent(claim: string, requireOurs: RequireOurs = () => {}): Promise<void> {
    await this.reading?.();
    requireOurs();
    this.freed.push(claim);
  }
}

/** A call in few words. */
export interface Asked {
  readonly cid?: string;
  readonly ifname?: string;
  readonly netns?: string;
  readonly args?: string;
  readonly override?: string;
  readonly ipam?: object;
  readonly conf?: object;
  readonly stdin?: string;
  readonly startNs?: bigint;
  readonly signal?: AbortSignal;
}

/** Handler, journal and cache of one node, without socket and processes, on a clock that the test moves. */
export class NodeBench {
  readonly clock = new ManualClock();
  readonly host = new PlainHost();
  readonly claimSource = new ScriptedClaims();
  readonly blockSource = new PlainBlocks();
  /** Makes commits fail while it is set. */
  diskFault: Error | undefined;
  /** How many transactions were committed. */
  commits = 0;
  /** The configuration's `ipam` unless a call has its own. */
  ipam: object = { subnet: "10.1.2.0/24" };
  readonly #database: Database;
  #bootId = "boot-1";
  #ns = 1_000n;
  #parts: AgentServices | undefined;
  #handle: Handler | undefined;

  protected constructor() {
    this.#database = openDatabase(":memory:", {
      beforeCommit: () => {
        if (this.diskFault !== undefined) throw this.diskFault;
        this.commits++;
      },
    });
  }

  /** Throws what a version of Berth meets on the journal that knows of blocks and not of single addresses of them. */
  readAsBefore(): void {
    this.#database.migrate(BLOCKS, BLOCK_STEPS);
  }

  static async open(): Promise<NodeBench> {
    const bench = new NodeBench();
    await bench.restart();
    return bench;
  }

  /** A new process on the same journal. */
  async restart(): Promise<void> {
    await this.#parts?.detachReporter.close();
    this.#parts = await createServices({
      database: this.#database,
      claimSource: this.claimSource,
      blockSource: this.blockSource,
      clock: this.clock,
      random: middling,
      log: noopLogger,
      bootId: this.#bootId,
      host: this.host,
    });
    this.#handle = createHandler(this.#parts);
  }

  /** The watch has told of the blocks as they are now, and the journal knows. */
  async hearBlocks(): Promise<void> {
    this.parts.blockFollower.follow();
    await this.parts.blockFollower.record();
  }

  /** The next start is that of another boot. */
  reboot(): void {
    this.#bootId += "+";
  }

  get parts(): AgentServices {
    return this.#parts ?? assert.fail("not open");
  }

  get held(): readonly string[] {
    return [...this.parts.attachments.held()].sort();
  }

  /** Later than every call before. */
  nextNs(): bigint {
    this.#ns += 1_000n;
    return this.#ns;
  }

  call(command: string, asked: Asked = {}): Promise<Answer> {
    const { cid = "c1", ifname = "eth0", netns = `/run/netns/${cid}`, args = "" } = asked;
    const conf = { cniVersion: "1.1.0", name: "net", ipam: asked.ipam ?? this.ipam, ...asked.conf };
    const env = new Map([
      ["CNI_COMMAND", command],
      ["CNI_CONTAINERID", cid],
      ["CNI_IFNAME", ifname],
      ["CNI_NETNS", netns],
      ["CNI_ARGS", args],
      ["CNI_PATH", "/opt/cni/bin"],
      ["CNI_NETNS_OVERRIDE", asked.override ?? ""],
    ]);
    const stdin = Buffer.from(asked.stdin ?? JSON.stringify(conf));
    const handle = this.#handle ?? assert.fail("not open");
    return handle(
      { startNs: asked.startNs ?? this.nextNs(), env, stdin },
      asked.signal ?? new AbortController().signal,
    );
  }

  /** An ADD whose answer reaches the runtime (or not); its addresses. */
  async add(asked: Asked = {}, outcome: Outcome = "delivered"): Promise<readonly string[]> {
    const answer = await this.call("ADD", asked);
    assert.equal(answer.exitStatus, 0, answer.stdout);
    await answer.settle?.(outcome);
    return addressesOf(answer);
  }

  /** Must succeed without a word. */
  async del(asked: Asked = {}): Promise<void> {
    assert.deepEqual(await this.call("DEL", asked), { exitStatus: 0, stdout: "", stderr: "" });
  }

  async close(): Promise<void> {
    await this.#parts?.detachReporter.close();
    this.#database.close();
  }
}

export function addressesOf(answer: Answer): readonly string[] {
  const { ips }: { readonly ips: readonly { readonly address: string }[] } = JSON.parse(answer.stdout);
  return ips.map(({ address }) => address.split("/", 1)[0] ?? "");
}

/** Code and words of a call that failed. */
export function errorOf(answer: Answer): {
  readonly code: number;
  readonly msg: string;
  readonly details?: string;
} {
  assert.notEqual(answer.exitStatus, 0, answer.stdout);
  return JSON.parse(answer.stdout);
}

export function podArgs(name: string, uid: string): string {
  return `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${uid}`;
}

export function address(text: string) {
  return parseAddress(text) ?? assert.fail(text);
}
