// SPDX-License-Identifier: Apache-2.0
// A webhook as a process of its own, and connections of an API server to it, which comes before whoever else is there.
import { ReviewLine, reviewRequest } from "../bench/review-line.ts";
import { pod, review } from "../support/objects.ts";
import { prefer } from "../support/processor.ts";
import { Companion, WEBHOOK_FLAGS } from "./companion.ts";

/** A dry run, so that the webhook keeps as many records at the last as at the first. */
const REVIEW = reviewRequest({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: review(pod("ours", { annotations: { "berth.dev/pools": "web" } }), "CREATE", { dryRun: true }),
});

export class ApiServerLines {
  readonly door: Companion;
  readonly port: number;
  readonly #lines: readonly ReviewLine[];
  readonly #giveBack: readonly (() => void)[];

  private constructor(
    door: Companion,
    port: number,
    lines: readonly ReviewLine[],
    giveBack: readonly (() => void)[],
  ) {
    this.door = door;
    this.port = port;
    this.#lines = lines;
    this.#giveBack = giveBack;
  }

  /** With `proven` among the arguments the API server shows a certificate. */
  static async open(count: number, args: readonly string[]): Promise<ApiServerLines> {
    const door = new Companion("./door.ts", { flags: WEBHOOK_FLAGS, args });
    const giveBack = [door.pid, process.pid].map(prefer);
    const said = await door.next<{ readonly port: number; readonly ca: string }>();
    const lines = await Promise.all(Array.from({ length: count }, () => ReviewLine.open(said)));
    return new ApiServerLines(door, said.port, lines, giveBack);
  }

  /** One review, over that connection. */
  async ask(line: number): Promise<void> {
    await this.#lines[line]?.ask(REVIEW);
  }

  async close(): Promise<void> {
    for (const line of this.#lines) line.close();
    await this.door.end();
    for (const one of this.#giveBack) one();
  }
}
