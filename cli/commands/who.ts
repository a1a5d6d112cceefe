// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { notInPools } from "../../allocator/planning/outside-pools.ts";
import { reportError } from "../apply/report.ts";
import { namespaceFor } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { lookUp } from "../explain/address-lookup.ts";
import { describeAddress, unseenWords } from "../explain/address-words.ts";
import type { Command } from "../terminal/command.ts";
import { NAMESPACE, TARGET_FLAGS, usageError } from "../terminal/flags.ts";
import { document, formatOf } from "../terminal/output.ts";
import { addressNamed } from "./address-named.ts";

/** `berthctl who` */
export const who: Command = {
  name: "who",
  summary: "say who has an address",
  onlyReads: true,
  usage: ["who ADDRESS|MAC [-o json] [-n NS] [--data DIR | --context NAME]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    namespace: {
      ...NAMESPACE,
      about:
        "whose claims and pods are looked through, if reservations may not be read (default: the context's)",
    },
    ...TARGET_FLAGS,
  },
  examples: ["berthctl who 10.20.0.51", "berthctl who fd00:20::51 -o json", "berthctl who 02:00:00:00:00:51"],
  async run(args, context) {
    const [text = ""] = args.expect("ADDRESS");
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const address = addressOf(text);
    return await withBackend(context, "read", async (backend) => {
      const namespace = namespaceFor(backend, args.text("namespace"));
      const found = await lookUp(backend, address, namespace);
      const { view, report } = found;
      const isOutside = report.state === "outside" && report.sandboxes.length === 0;
      const isUnseen = report.state === "unseen" && report.pod === undefined;
      if (format === "json" || format === "yaml") context.io.stdout.write(document(report, format));
      else if (isOutside) reportError(context.io, notInPools(view, address).message);
      else if (isUnseen) reportError(context.io, unseenWords(found, namespace));
      else context.io.stdout.write(describeAddress(report));
      return isUnseen ? 2 : isOutside ? 1 : 0;
    });
  },
};

function addressOf(text: string): Address {
  const address = addressNamed(text);
  if (address !== undefined) return address;
  const words = `${JSON.stringify(text)} is neither an IP nor a MAC address; write 10.20.0.51 or fd00:20::51, no prefix, or 02:00:00:00:00:51`;
  const isName = /^[a-z][-a-z0-9./]*$/.test(text) && !text.includes(":");
  throw usageError(
    isName ? `${words}; what a pod or claim has: berthctl explain pod/NAME or claim/NAME` : words,
  );
}
