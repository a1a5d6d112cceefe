// SPDX-License-Identifier: Apache-2.0
// A test that calls process.exit would end all tests after it unseen: what called it is told, and the process ends with a
// failure.
import { fromRoot, ownFileOr, placesOf, tell, testFileOf } from "./tell.ts";

const exit = process.exit.bind(process);
process.exit = (code) => {
  const { stack = "" } = new Error();
  const [, , caller = "", ...callers] = stack.split("\n");
  // node's own runner ends itself by it when it is interrupted
  if (caller.includes("node:internal/")) return exit(code);
  const places = placesOf([caller, ...callers].join("\n"));
  const [first = "an unknown place"] = places;
  tell({
    kind: "exit",
    file: ownFileOr(testFileOf(places)),
    message: `a test ended its process, so that what comes after it was not run: process.exit(${code ?? ""}) at ${fromRoot(first)}`,
  });
  return exit(code === undefined || Number(code) === 0 ? 1 : code);
};

// As Berth's programs do (system/exit.ts). The last of all that listen for the end: node's own runner settles the code there.
const leave = () => exit();
process.on("beforeExit", () => {
  process.off("exit", leave);
  process.on("exit", leave);
});
