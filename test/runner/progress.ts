// SPDX-License-Identifier: Apache-2.0
// The reporter `spec`, but for the numbers at its end: the runner prints those of all processes together.
import { Readable } from "node:stream";
import { spec as Spec, type TestEvent } from "node:test/reporters";

const NUMBER = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter's default export
export default async function* progress(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const text of Readable.from(withoutNumbers(events)).pipe(new Spec())) yield String(text);
}

async function* withoutNumbers(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    const isNumber =
      event.type === "test:diagnostic" && event.data.nesting === 0 && NUMBER.test(event.data.message);
    if (!isNumber) yield event;
  }
}
