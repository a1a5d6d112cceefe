// SPDX-License-Identifier: Apache-2.0

const NEWLINE = 10;

/** The lines of a body, however it is cut into chunks; an unended last line is not one. Throws what `faultOf` makes of the body's fault. */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  faultOf: (error: unknown) => unknown,
): AsyncGenerator<string, void, void> {
  let parts: Buffer[] = []; // of the line that is not ended yet
  try {
    for await (const chunk of chunks) {
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        parts.push(chunk.subarray(start, end));
        yield (parts.length === 1 ? (parts[0] ?? chunk) : Buffer.concat(parts)).toString("utf8");
        parts = [];
        start = end + 1;
      }
      if (start < chunk.length) parts.push(chunk.subarray(start));
    }
  } catch (error) {
    throw faultOf(error);
  }
}
