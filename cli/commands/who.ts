// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/address.ts";
import { outside } from "../../allocator/refusals.ts";
import type { Command } from "../command.ts";
import { misuse, PLACE } from "../flags.ts";
import { document, formatOf } from "../output.ts";
import { withRegistry } from "../registries.ts";
import { glimpse } from "../registry.ts";
import { reportError } from "../report.ts";
import { describeSighting, sightingOf } from "../sighting.ts";

/** `berthctl who` */
export const who: Command = {
  name: "who",
  summary: "say who has an address",
  usage: ["who ADDRESS [-o json] [--data DIR | --context NAME]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    ...PLACE,
  },
  examples: ["berthctl who 10.20.0.51", "berthctl who fd00:20::51 -o json"],
  async run(args, scene) {
    const [text = ""] = args.expect("ADDRESS");
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const address = addressOf(text);
    return await withRegistry(scene, "read", async ({ store, uses }) => {
      const view = await glimpse(store, [address]);
      const claims = [...view.claims()].map(({ record }) => record);
      const sighting = sightingOf(view, uses(claims), address);
      const unknown = sighting.state === "outside" && sighting.sandboxes.length === 0;
      if (format === "json" || format === "yaml") scene.io.stdout.write(document(sighting, format));
      else if (unknown) reportError(scene.io, outside(view, address).message);
      else scene.io.stdout.write(describeSighting(sighting));
      return unknown ? 1 : 0;
    });
  },
};

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return address;
  throw misuse(`${JSON.stringify(text)} is not an IP address; write 10.20.0.51 or fd00:20::51, no prefix`);
}
