// SPDX-License-Identifier: Apache-2.0
import { rollBack, type Sql, type Transactional, type Work } from "./sql.ts";

/** One queued work, with the type of its answer closed over. */
interface Job {
  /** Gives the function that answers the caller once the commit is through. */
  run(sql: Sql): () => void;
  reject(error: unknown): void;
}

interface Outcome {
  readonly kept: boolean;
  readonly settle: () => void;
}

/** A job costs some 50 µs, so a batch holds the event loop for about 10 ms at most. */
const MOST_JOBS = 200;

/**
 * Puts works that are asked for in the same turn of the event loop into one transaction, so that they share one
 * fsync. Each promise settles after the COMMIT.
 */
export class GroupCommit {
  readonly #connection: Transactional;
  readonly #beforeCommit: () => void;
  readonly #afterCommit: () => void;
  #waiting: Job[] = [];
  #scheduled = false;

  /** `beforeCommit` may throw: nothing of the batch is kept then. `afterCommit` must not. */
  constructor(connection: Transactional, hooks: { beforeCommit: () => void; afterCommit: () => void }) {
    this.#connection = connection;
    this.#beforeCommit = hooks.beforeCommit;
    this.#afterCommit = hooks.afterCommit;
  }

  /** Queues a work, which must be synchronous. If it throws, only what it wrote itself is undone. */
  add<T>(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({
        run: (sql) => {
          const answer = work(sql);
          return () => resolve(answer);
        },
        reject,
      });
      this.#schedule();
    });
  }

  /** Commits everything that waits, now. */
  flush(): void {
    while (this.#waiting.length > 0) this.#commit(this.#waiting.splice(0, MOST_JOBS));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const batch = this.#waiting.splice(0, MOST_JOBS);
      if (batch.length > 0) this.#commit(batch);
      if (this.#waiting.length > 0) this.#schedule();
    });
  }

  #commit(batch: readonly Job[]): void {
    const outcomes: Outcome[] = [];
    try {
      this.#connection.run("BEGIN IMMEDIATE");
      for (const job of batch) outcomes.push(batch.length === 1 ? this.#runOnly(job) : this.#runAlone(job));
      this.#beforeCommit();
      this.#connection.run("COMMIT");
    } catch (error) {
      this.#fail(batch, outcomes, error);
      return;
    }
    for (const { settle } of outcomes) settle();
    this.#afterCommit();
  }

  /** One that has no neighbours needs no savepoint: if it throws, the transaction is undone. */
  #runOnly(job: Job): Outcome {
    return { kept: true, settle: job.run(this.#connection) };
  }

  #runAlone(job: Job): Outcome {
    this.#connection.run("SAVEPOINT work");
    try {
      const settle = job.run(this.#connection);
      this.#connection.run("RELEASE work");
      return { kept: true, settle };
    } catch (error) {
      // SQLite gave up the whole transaction: there is nothing left to go on with.
      if (!this.#connection.inTransaction) throw error;
      this.#connection.run("ROLLBACK TO work");
      this.#connection.run("RELEASE work");
      return { kept: false, settle: () => job.reject(error) };
    }
  }

  #fail(batch: readonly Job[], outcomes: readonly Outcome[], error: unknown): void {
    try {
      rollBack(this.#connection);
    } catch {
      // Nothing more can be done here: the next BEGIN fails and says why.
    }
    for (const [i, job] of batch.entries()) {
      const outcome = outcomes[i];
      if (outcome?.kept === false) outcome.settle();
      else job.reject(error);
    }
  }
}
