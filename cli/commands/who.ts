// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { addressOfMac, parseMac } from "../../allocator/ip/mac.ts";
import { notInPools } from "../../allocator/planning/outside-pools.ts";
import { reportError } from "../apply/report.ts";
import { readableCache } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { addressReportOf, describeAddress } from "../explain/address-report.ts";
import { occupyOne, withPodOfBlock } from "../explain/occupied-addresses.ts";
import type { Command } from "../terminal/command.ts";
import { TARGET_FLAGS, usageError } from "../terminal/flags.ts";
import { document, formatOf } from "../terminal/output.ts";

/** `berthctl who` */
export const who: Command = {
  name: "who",
  summary: "say who has an address",
  onlyReads: true,
  usage: ["who ADDRESS|MAC [-o json] [--data DIR | --context NAME]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    ...TARGET_FLAGS,
  },
  examples: ["berthctl who 10.20.0.51", "berthctl who fd00:20::51 -o json", "berthctl who 02:00:00:00:00:51"],
  async run(args, context) {
    const [text = ""] = args.expect("ADDRESS");
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const address = addressOf(text);
    return await withBackend(context, "read", async (backend) => {
      const { store, uses } = backend;
      const { view, unread } = await readableCache(store, address);
      await occupyOne(view, backend, address);
      const claims = [...view.claims()].map(({ record }) => record);
      const report = await withPodOfBlock(
        addressReportOf(view, await uses(claims), address, unread),
        backend,
      );
      const unknown = report.state === "outside" && report.sandboxes.length === 0;
      if (format === "json" || format === "yaml") context.io.stdout.write(document(report, format));
      else if (unknown) reportError(context.io, notInPools(view, address).message);
      else context.io.stdout.write(describeAddress(report));
      return unknown ? 1 : 0;
    });
  },
};

function addressOf(text: string): Address {
  const mac = parseMac(text);
  const address = mac === undefined ? parseAddress(text) : addressOfMac(mac);
  if (address !== undefined) return address;
  throw usageError(
    `${JSON.stringify(text)} is neither an IP nor a MAC address; write 10.20.0.51 or fd00:20::51, no prefix, or 02:00:00:00:00:51`,
  );
}
