// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { run } from "../support/process.ts";
import { type Machine, PATH } from "./machine.ts";

/** The machines, and this host, on one bridge of the control plane's machine. */
const LAN = { subnet: "172.30.0.0/24", prefix: 24, host: "172.30.0.254" };
export const ROUTER = "172.30.0.1";
/** The Service `kubernetes`: the API server itself listens there, so that nobody has to forward anything. */
export const SERVICE_ADDRESS = "10.96.0.1";
export const SERVICES = "10.96.0.0/16";
/** Of each node, for its pods alone: the link that main plugins hang them on. */
export const POD_CABLE = "eth1";
/** That of the machines, and that which joins the pods of all nodes. */
const [LAN_BRIDGE, POD_BRIDGE] = ["lan", "pods"];
/**
 * Names and hardware addresses. A bridge without one of its own takes the lowest of its cables': it changes when a node
 * goes or comes, and for half a minute everybody sends what is for the router to where it was.
 */
const BRIDGES = [
  [LAN_BRIDGE, "02:be:00:00:00:01"],
  [POD_BRIDGE, "02:be:00:00:00:02"],
];
/** What the router has among the pods: gateways of the examples' pools, of the tests', of pods that do not ask. */
const GATEWAYS = [
  ...["10.20.0.254/24", "10.30.0.1/24", "10.40.0.1/16", "10.244.0.1/16"],
  // of examples/cluster/blocks.yaml
  ...["192.168.40.1/24", "10.64.0.1/19", "203.0.113.1/24"],
  ...["fd00:20::fffe/64", "fd00:40::1/64"],
];
/** What this host reaches by way of the router. */
const BEHIND = ["10.20.0.0/24", "10.30.0.0/24", "10.40.0.0/16", "10.244.0.0/16", SERVICES];
/** This host's end of its cable. It goes with the machine at the other end. */
export const HOST_LINK = "berth-cluster";

/** Why the network cannot be made on this host; undefined when it can. */
export async function whyNoRoom(): Promise<string | undefined> {
  for (const subnet of [LAN.subnet, ...BEHIND]) {
    const text = await ip("-j", "route", "show", "root", subnet);
    const routes = JSON.parse(text.trim() === "" ? "[]" : text) as readonly { readonly dev: string }[];
    const [first] = routes;
    if (first !== undefined) return `this host has a route to ${subnet} already, through ${first.dev}`;
  }
  return undefined;
}

/** At once: with the machine at the other end it goes when the kernel finds the time. */
export async function unplugHost(): Promise<void> {
  if (hasHostLink()) await run("ip", ["link", "delete", HOST_LINK], { env: { PATH } });
}

export function hasHostLink(): boolean {
  return existsSync(`/sys/class/net/${HOST_LINK}`);
}

/** Makes the bridges, and the cable between this host and the control plane's machine, which routes. */
export async function wireRouter(control: Machine): Promise<void> {
  await forward(control);
  await ip("link", "add", HOST_LINK, "type", "veth", "peer", "name", "host", "netns", String(control.pid));
  await batch(control, [
    ...BRIDGES.flatMap(([name, mac]) => [
      `link add ${name} address ${mac} type bridge`,
      `link set ${name} up`,
    ]),
    `link set host master ${LAN_BRIDGE} up`,
    `addr add ${ROUTER}/${LAN.prefix} dev ${LAN_BRIDGE}`,
    `addr add ${SERVICE_ADDRESS}/32 dev lo`,
    ...GATEWAYS.map((cidr) => `addr add ${cidr} dev ${POD_BRIDGE}${cidr.includes(":") ? " nodad" : ""}`),
  ]);
  await ip("addr", "add", `${LAN.host}/${LAN.prefix}`, "dev", HOST_LINK);
  await ip("link", "set", HOST_LINK, "up");
  for (const subnet of BEHIND) await ip("route", "add", subnet, "via", ROUTER, "dev", HOST_LINK);
}

/** Two cables from a node to the router: one for the node itself, one for its pods. */
export async function wireNode(control: Machine, node: Machine, address: string): Promise<void> {
  await forward(node);
  for (const [i, cable] of ["eth0", POD_CABLE].entries()) {
    // as a node keeps its cards: it comes back with the hardware addresses that it had
    const here = ["address", `02:be:00:00:1${i}:${address.split(".")[3]}`, "netns", String(node.pid)];
    const there = ["name", `${node.name}-${cable}`, "netns", String(control.pid)];
    await ip("link", "add", cable, ...here, "type", "veth", "peer", ...there);
  }
  await batch(control, [
    `link set ${node.name}-eth0 master ${LAN_BRIDGE} up`,
    `link set ${node.name}-${POD_CABLE} master ${POD_BRIDGE} up`,
  ]);
  await batch(node, [
    `link set eth0 up`,
    `addr add ${address}/${LAN.prefix} dev eth0`,
    `route add default via ${ROUTER}`,
    `link set ${POD_CABLE} up`,
  ]);
}

async function forward(machine: Machine): Promise<void> {
  const files = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];
  await machine.must(["tee", ...files], "1\n");
}

async function batch(machine: Machine, lines: readonly string[]): Promise<void> {
  await machine.must(["ip", "-batch", "-"], `${lines.join("\n")}\n`);
}

async function ip(...args: readonly string[]): Promise<string> {
  const { rc, stdout, stderr } = await run("ip", args, { env: { PATH } });
  if (rc !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}
