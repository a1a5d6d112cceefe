// SPDX-License-Identifier: Apache-2.0
// One etcd in memory, that speaks the messages of a real one: transactions, reads of the past, watches, compaction.
import { GRPC, GrpcError } from "../../allocator/store/etcd/grpc-frames.ts";
import { type KeyValue, METHODS } from "../../allocator/store/etcd/messages.ts";
import { type FieldValue, MessageWriter, readMessage } from "../../allocator/store/etcd/protobuf.ts";

interface Event {
  readonly revision: number;
  readonly key: string;
  /** Undefined: it is deleted. */
  readonly entry: KeyValue | undefined;
}

interface Keys {
  readonly key: string;
  readonly end: string | undefined;
}

const CLUSTER = 7;
const COMPACTED = "etcdserver: mvcc: required revision has been compacted";

export class MemoryEtcd {
  revision = 1;
  #compacted = 0;
  readonly #now = new Map<string, KeyValue>(); // key -> what it has
  readonly #history: Event[] = [];
  #changed = Promise.withResolvers<void>();

  /** Forgets the past, as an administrator's compaction does. */
  compact(): void {
    this.#compacted = this.revision;
    this.#wake();
  }

  /** A call that ends with its answer. */
  unary(path: string, request: Uint8Array): Buffer {
    if (path === METHODS.range) return this.#range(request).bytes();
    if (path === METHODS.txn) return this.#transaction(request).bytes();
    throw new GrpcError(GRPC.internal, `nothing serves ${path}`, false);
  }

  /** A watch, which tells nothing while its host is cut off. */
  async *follow(
    request: Uint8Array,
    isUp: () => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, void> {
    let [keys, next]: [Keys, number] = [{ key: "", end: undefined }, 0];
    readMessage(request, {
      1: (create) => {
        keys = keysOf(create.bytes());
        readMessage(create.bytes(), { 3: (number) => (next = number.int()) });
      },
    });
    yield this.#head().flag(3, true).bytes();
    while (!signal.aborted) {
      const seen = this.#changed.promise;
      if (isUp() && next <= this.#compacted && next <= this.revision) {
        yield this.#head().flag(4, true).int(5, this.#compacted).bytes();
        return;
      }
      const events = isUp() ? this.#history.filter((one) => one.revision >= next && isIn(one.key, keys)) : [];
      if (isUp()) next = this.revision + 1;
      if (events.length > 0) {
        const news = this.#head();
        for (const event of events) news.message(11, eventOf(event));
        yield news.bytes();
      } else await Promise.race([seen, aborted(signal)]);
    }
  }

  /** Whoever waits looks again: a host is reached again. */
  wake(): void {
    this.#wake();
  }

  #range(request: Uint8Array): MessageWriter {
    const keys = keysOf(request);
    let [limit, at] = [0, 0];
    readMessage(request, { 3: (number) => (limit = number.int()), 4: (number) => (at = number.int()) });
    if (at > 0 && at < this.#compacted) throw new GrpcError(GRPC.outOfRange, COMPACTED, true);
    const all = this.#entries(keys, at === 0 ? this.revision : at);
    const page = limit === 0 ? all : all.slice(0, limit);
    const answer = this.#head();
    for (const entry of page) answer.message(2, entryOf(entry));
    return answer.flag(3, page.length < all.length);
  }

  #entries(keys: Keys, revision: number): readonly KeyValue[] {
    if (revision >= this.revision) {
      return [...this.#now.values()].filter((one) => isIn(one.key, keys)).toSorted(byKey);
    }
    const past = new Map<string, KeyValue | undefined>();
    for (const event of this.#history) {
      if (event.revision <= revision && isIn(event.key, keys)) past.set(event.key, event.entry);
    }
    return [...past.values()].filter((one) => one !== undefined).toSorted(byKey);
  }

  #transaction(request: Uint8Array): MessageWriter {
    const [writes, reads]: [FieldValue[], FieldValue[]] = [[], []];
    let holds = true;
    readMessage(request, {
      1: (compare) => (holds = this.#compare(compare.bytes()) && holds),
      2: (write) => writes.push(write),
      3: (read) => reads.push(read),
    });
    const answers: MessageWriter[] = [];
    if (holds) this.#write(writes);
    else
      for (const read of reads)
        readMessage(read.bytes(), { 1: (one) => answers.push(this.#range(one.bytes())) });
    const answer = this.#head().flag(2, holds);
    for (const one of answers) answer.message(3, new MessageWriter().message(1, one));
    return answer;
  }

  /** On the revision at which the key was written last. */
  #compare(bytes: Uint8Array): boolean {
    let [key, revision, target] = ["", 0, 0];
    readMessage(bytes, {
      2: (number) => (target = number.int()),
      3: (text) => (key = text.text()),
      6: (number) => (revision = number.int()),
    });
    if (target !== 2) throw new GrpcError(GRPC.internal, "only MOD is compared", false);
    return (this.#now.get(key)?.modRevision ?? 0) === revision;
  }

  #write(writes: readonly FieldValue[]): void {
    const revision = ++this.revision;
    for (const write of writes) {
      readMessage(write.bytes(), {
        2: (put) => {
          let [key, value] = ["", ""];
          readMessage(put.bytes(), { 1: (text) => (key = text.text()), 2: (text) => (value = text.text()) });
          const createRevision = this.#now.get(key)?.createRevision ?? revision;
          this.#set({ revision, key, entry: { key, value, createRevision, modRevision: revision } });
        },
        3: (deletion) => {
          const { key } = keysOf(deletion.bytes());
          if (this.#now.has(key)) this.#set({ revision, key, entry: undefined });
        },
      });
    }
    this.#wake();
  }

  #set(event: Event): void {
    if (event.entry === undefined) this.#now.delete(event.key);
    else this.#now.set(event.key, event.entry);
    this.#history.push(event);
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  #head(): MessageWriter {
    return new MessageWriter().message(1, new MessageWriter().int(1, CLUSTER).int(3, this.revision));
  }
}

function keysOf(bytes: Uint8Array): Keys {
  let [key, end]: [string, string | undefined] = ["", undefined];
  readMessage(bytes, { 1: (text) => (key = text.text()), 2: (text) => (end = text.text()) });
  return { key, end };
}

function isIn(key: string, { key: first, end }: Keys): boolean {
  return end === undefined ? key === first : key >= first && key < end;
}

function byKey(a: KeyValue, b: KeyValue): number {
  return a.key < b.key ? -1 : 1;
}

function entryOf({ key, value, createRevision, modRevision }: KeyValue): MessageWriter {
  return new MessageWriter().text(1, key).int(2, createRevision).int(3, modRevision).text(5, value);
}

function eventOf({ revision, key, entry }: Event): MessageWriter {
  const gone = { key, value: "", createRevision: 0, modRevision: revision };
  return new MessageWriter().int(1, entry === undefined ? 1 : 0).message(2, entryOf(entry ?? gone));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
