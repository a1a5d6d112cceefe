// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../base/errors.ts";
import type { Clock, Logger, Random } from "../../base/ports.ts";
import { CertificateFiles, type EtcdAccess, readPassword } from "./access.ts";
import { faultOf, isCompacted, isOverlong, remedyFor } from "./errors.ts";
import { GrpcConnection } from "./grpc-connection.ts";
import { GrpcError } from "./grpc-frames.ts";
import {
  authenticateRequest,
  type Change,
  type ChangeResult,
  type Condition,
  type Creation,
  type CreationsResult,
  changeRequest,
  creationsRequest,
  METHODS,
  type Range,
  type RangeResult,
  readChange,
  readCreations,
  readRange,
  readToken,
  readWatch,
  type WatchNews,
  watchRequest,
} from "./messages.ts";
import type { MessageWriter } from "./protobuf.ts";
import { isLate, RangeCall, type ShrinkingCall, WriteCall } from "./shrinking-call.ts";

/** The answer to a write; `lost`: it may have been done, and may be done yet. */
export type WriteAnswer<T> =
  | ({ readonly kind: "answer" } & T)
  | { readonly kind: "lost"; readonly error: BerthError };

/** One member. */
export type Connection = Pick<GrpcConnection, "unary" | "follow" | "retire" | "close">;

export interface EtcdClientDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Connects to a member; gRPC if absent. */
  readonly connect?: ((origin: string) => Connection) | undefined;
}

/** For a call with all its attempts; a pod waits for it. */
const CALL_MS = 10_000;
/** For one attempt: a member that hangs is left for another one. */
const ATTEMPT_MS = 3_000;
/** Rounds over all members; an election is over before the last one. */
const ROUNDS = 5;
const WAIT_MS = 100;
/** How often a change of the certificates on disk is looked for. */
const FILES_MS = 5_000;
/** Without a leader among its peers a member ends a watch instead of being silent. */
const NEEDS_LEADER = { hasleader: "true" };

/** One etcd cluster: goes from member to member until one answers. */
export class EtcdClient {
  #place = "";
  #access: EtcdAccess;
  readonly #deps: EtcdClientDeps;
  #files: CertificateFiles;
  #members: readonly Connection[] = [];
  #cluster: string | undefined;
  #at: number;
  #token: Promise<string> | undefined;
  #filesSeen: number;

  /** Throws CONFIG_INVALID. Connects with the first call. */
  constructor(access: EtcdAccess, deps: EtcdClientDeps) {
    this.#deps = deps;
    this.#access = access;
    this.#files = new CertificateFiles(access);
    this.#setAccess(access);
    this.#at = Math.floor(deps.random.fraction() * this.#members.length);
    this.#filesSeen = deps.clock.monotonic();
  }

  /** The endpoints, for people. */
  get place(): string {
    return this.#place;
  }

  /** The id of the cluster that answered a read last; undefined before the first one. */
  get cluster(): string | undefined {
    return this.#cluster;
  }

  /** From now on the same cluster is reached so. Throws CONFIG_INVALID. */
  async reachBy(access: EtcdAccess): Promise<void> {
    const before = this.#members;
    this.#setAccess(access);
    this.#token = undefined;
    await Promise.all(before.map((member) => member.retire()));
  }

  /**
   * Less than the limit where that many are too long for an answer, or do not come in time. Throws BerthError, `isOverlong` of one
   * key's answer too; a GrpcError of compaction comes as it is.
   */
  async range(range: Range): Promise<RangeResult> {
    const answer = await this.#call(METHODS.range, new RangeCall(range));
    const result = decoded(() => readRange(answer));
    this.#cluster = result.cluster;
    return result;
  }

  /** One write. What has surely not been done is tried again. Throws BerthError for what has not been done. */
  async change(change: Change, condition?: Condition): Promise<WriteAnswer<ChangeResult>> {
    return await this.#write(changeRequest(change, condition), (bytes) => readChange(bytes, condition));
  }

  /** The same for several keys that are not there. */
  async createAll(
    creations: readonly Creation[],
    condition?: Condition,
  ): Promise<WriteAnswer<CreationsResult>> {
    const request = creationsRequest(creations, condition);
    return await this.#write(request, (bytes) => readCreations(bytes, condition));
  }

  /** What happens to the range, until `signal` aborts or the member ends it: then it throws GrpcError, or just ends. */
  async *watch(
    range: Required<Pick<Range, "key" | "end" | "revision">>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchNews, void, void> {
    await this.#refresh();
    const member = this.#member();
    try {
      const headers = { ...(await this.#headers(member)), ...NEEDS_LEADER };
      const how = { headers, signal };
      for await (const message of member.follow(METHODS.watch, watchRequest(range).bytes(), how)) {
        const news = decoded(() => readWatch(message));
        if (news.canceled && news.compactRevision === 0) this.#token = undefined; // perhaps for its sake
        yield news;
      }
    } catch (error) {
      if (error instanceof GrpcError && remedyFor(error) === "authenticate") this.#token = undefined;
      this.#leave(member);
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.close()));
  }

  async #write<T>(request: MessageWriter, read: (answer: Buffer) => T): Promise<WriteAnswer<T>> {
    let answer: Buffer;
    try {
      answer = await this.#call(METHODS.txn, new WriteCall(request));
    } catch (error) {
      if (error instanceof LostAnswer) return { kind: "lost", error: error.fault };
      throw error;
    }
    return { kind: "answer", ...decoded(() => read(answer)) };
  }

  #setAccess(access: EtcdAccess): void {
    const files = new CertificateFiles(access);
    this.#access = access;
    this.#place = access.endpoints.join(", ");
    this.#files = files;
    const { clock, connect } = this.#deps;
    const byGrpc = (origin: string) => new GrpcConnection(origin, () => files.current(), clock);
    this.#members = access.endpoints.map(connect ?? byGrpc);
  }

  async #call(path: string, call: ShrinkingCall): Promise<Buffer> {
    await this.#refresh();
    const { clock } = this.#deps;
    const until = clock.monotonic() + CALL_MS;
    for (let attempt = 1; ; attempt++) {
      const member = this.#member();
      try {
        const timeoutMs = Math.min(ATTEMPT_MS, Math.max(1, until - clock.monotonic()));
        return await member.unary(path, call.bytes(), { headers: await this.#headers(member), timeoutMs });
      } catch (error) {
        if (isOverlong(error) && call.shrink()) continue;
        const left = until - clock.monotonic();
        this.#judge(error, {
          ...{ verb: call.verb, member },
          isLast: left <= 0 || attempt >= ROUNDS * this.#members.length,
        });
        if (isLate(error)) call.shrink();
      }
      if (attempt % this.#members.length === 0) await this.#pause(attempt / this.#members.length);
    }
  }

  /** Throws what the caller is told; returns when the call is to be tried again. */
  #judge(
    error: unknown,
    { verb, member, isLast }: { verb: "read" | "write"; member: Connection; isLast: boolean },
  ): void {
    if (!(error instanceof GrpcError)) throw error;
    const remedy = remedyFor(error);
    if (remedy === "none" && verb === "read" && isCompacted(error)) throw error;
    const fault = faultOf(error, this.place);
    if (remedy === "none") throw fault;
    if (remedy === "authenticate") {
      const mayHelp = this.#token !== undefined && this.#access.user !== undefined;
      this.#token = undefined;
      if (isLast || !mayHelp) throw fault;
      return;
    }
    this.#leave(member);
    if (remedy === "judge" && verb === "write") throw new LostAnswer(fault);
    if (isLast) throw fault;
  }

  #pause(round: number): Promise<void> {
    const { clock, random } = this.#deps;
    return clock.sleep(WAIT_MS * 2 ** round * (0.5 + 0.5 * random.fraction()));
  }

  #member(): Connection {
    const member = this.#members[this.#at % this.#members.length];
    if (member === undefined) throw new BerthError("CONFIG_INVALID", "etcd has no endpoint");
    return member;
  }

  /** The next call goes to another one, unless somebody has left this one already. */
  #leave(member: Connection): void {
    if (this.#member() === member) this.#at = (this.#at + 1) % this.#members.length;
  }

  async #headers(member: Connection): Promise<Readonly<Record<string, string>>> {
    const { user } = this.#access;
    if (user === undefined) return {};
    this.#token ??= this.#authenticate(member, user);
    const asked = this.#token;
    try {
      const token = await asked;
      return token === "" ? {} : { token };
    } catch (error) {
      if (this.#token === asked) this.#token = undefined;
      throw error;
    }
  }

  async #authenticate(member: Connection, user: string): Promise<string> {
    const { passwordFile } = this.#access;
    const password = passwordFile === undefined ? "" : readPassword(passwordFile);
    const request = authenticateRequest(user, password).bytes();
    try {
      const answer = await member.unary(METHODS.authenticate, request, {
        headers: {},
        timeoutMs: ATTEMPT_MS,
      });
      return readToken(answer);
    } catch (error) {
      if (error instanceof GrpcError && /authentication is not enabled/.test(error.message)) return "";
      // whatever became of it, the call that needs the token was not made
      throw error instanceof GrpcError ? new GrpcError(error.code, error.message, false) : error;
    }
  }

  /** Certificates are renewed on disk: what was connected with the old ones is connected anew. */
  async #refresh(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (now - this.#filesSeen < FILES_MS) return;
    this.#filesSeen = now;
    const [log, host] = [this.#deps.log, this.place];
    const refused = (error: unknown) =>
      log.warn("new certificates for etcd are refused; those before stay in use", { host, error });
    if (!this.#files.hasChanged(refused)) return;
    log.info("certificates for etcd have changed; connecting again", { host });
    await Promise.all(this.#members.map((member) => member.retire()));
  }
}

/** A write that was sent and not answered. */
class LostAnswer extends Error {
  readonly fault: BerthError;
  constructor(fault: BerthError) {
    super(fault.message);
    this.fault = fault;
  }
}

function decoded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new BerthError("INTERNAL", `etcd answered what cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
