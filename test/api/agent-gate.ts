// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, request, type Server } from "node:https";
import { buffer } from "node:stream/consumers";
import type { ControlPlane } from "./plane.ts";
import { servingCertificate } from "./serving-certificate.ts";
import type { TokenConfig } from "./token-config.ts";

/** Requests that are kept from the API server. */
export interface Held {
  /** Resolves when one has come. */
  readonly arrived: Promise<string>;
  /** Lets those that have come through, whether anybody still waits for the answer or not; gives the answers' status. */
  release(): Promise<readonly number[]>;
}

type Which = (method: string, path: string) => boolean;

interface Hold {
  readonly which: Which;
  readonly arrived: (url: string) => void;
  readonly letThrough: Promise<void>;
  readonly statuses: Promise<number>[];
  readonly most: number;
}

/** An HTTPS proxy in front of an API server that can keep single requests waiting. */
export class ApiGate {
  readonly #plane: ControlPlane;
  readonly #server: Server;
  readonly #ca: string;
  readonly #holds = new Set<Hold>();
  /** `PATCH /apis/...`, in the order in which they came. */
  readonly seen: string[] = [];

  private constructor(plane: ControlPlane, server: Server, ca: string) {
    this.#plane = plane;
    this.#server = server;
    this.#ca = ca;
  }

  static async start(plane: ControlPlane): Promise<ApiGate> {
    const { ca, cert, key } = await servingCertificate();
    const server = createServer({ cert, key });
    const gate = new ApiGate(plane, server, ca);
    server.on("request", (incoming, response) => {
      gate.#pass(incoming, response).catch(() => response.destroy());
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return gate;
  }

  /** The same, through the gate; that of the control plane's admin if absent. Who it is must be in a header: the gate shows no certificate. */
  kubeConfig(real = this.#plane.kubeConfig()): TokenConfig {
    const address = this.#server.address();
    const port = typeof address === "object" ? address?.port : 0;
    return real.at({ server: `https://127.0.0.1:${port}`, ca: this.#ca });
  }

  /** Keeps the requests of that kind from now on, or so many of them, until they are released. */
  hold(which: Which, most = Number.POSITIVE_INFINITY): Held {
    const [came, open] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
    const hold: Hold = { which, arrived: came.resolve, letThrough: open.promise, statuses: [], most };
    this.#holds.add(hold);
    return {
      arrived: came.promise,
      release: async () => {
        this.#holds.delete(hold);
        open.resolve();
        return await Promise.all(hold.statuses);
      },
    };
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = incoming;
    const body = await buffer(incoming);
    this.seen.push(`${method} ${url.split("?")[0]}`);
    const hold = [...this.#holds].find(
      ({ which, statuses, most }) => statuses.length < most && which(method, url),
    );
    const status = Promise.withResolvers<number>();
    hold?.statuses.push(status.promise);
    hold?.arrived(url);
    await hold?.letThrough;
    const headers = { ...incoming.headers, host: new URL(this.#plane.url).host };
    const sent = request(this.#plane.url + url, { method, headers, ca: this.#plane.ca, agent: false });
    sent.on("error", () => {
      status.resolve(0);
      response.destroy();
    });
    sent.on("response", (answer) => {
      status.resolve(answer.statusCode ?? 0);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    response.on("close", () => {
      if (hold === undefined) sent.destroy(); // a watch that nobody reads any more
    });
    sent.end(body);
  }
}
