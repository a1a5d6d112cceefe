// SPDX-License-Identifier: Apache-2.0
// A file in a process of its own tells at its end what it has used of the processor.
import { processorSeconds } from "./processor-time.ts";
import { tell } from "./tell.ts";

const file = process.argv[1];
if (process.env["NODE_TEST_CONTEXT"] !== undefined && file !== undefined)
  process.on("exit", () => {
    const { own, children } = processorSeconds();
    tell({ kind: "cpu", file, seconds: own + children });
  });
