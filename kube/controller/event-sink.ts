// SPDX-License-Identifier: Apache-2.0

import { Client } from "../api/client.ts";
import type { Connection } from "../api/connection.ts";
import { EVENTS } from "../api/resource.ts";
import type { EventSink, Series } from "./event-recorder.ts";
import { microTime } from "./lease-lock.ts";

interface Reporter {
  /** `berth.dev/webhook`. */
  readonly controller: string;
  /** The pod's name. */
  readonly instance: string;
}

/** Events of the API server (events.k8s.io/v1). Throws what a Client throws. */
export function kubeEventSink(connection: Connection, reporter: Reporter): EventSink {
  const client = new Client(connection, EVENTS);
  return {
    create: async (series) => {
      const place = { namespace: series.namespace, name: series.name };
      await client.create(place, bodyOf(series, reporter)); // the name has a token: if it is there, it is ours
    },
    count: async (series) => {
      const place = { namespace: series.namespace, name: series.name };
      const body = { series: seriesOf(series) };
      return (await client.patch(place, { type: "merge", body })) !== undefined;
    },
  };
}

function bodyOf(series: Series, { controller, instance }: Reporter): Readonly<Record<string, unknown>> {
  const { regarding, type, reason, action, note } = series.notice;
  return {
    ...{ regarding, type, reason, action, note },
    eventTime: microTime(series.firstAt),
    reportingController: controller,
    reportingInstance: instance,
    // a series counts from two
    ...(series.count > 1 ? { series: seriesOf(series) } : {}),
  };
}

function seriesOf({ count, lastAt }: Series) {
  return { count, lastObservedTime: microTime(lastAt) };
}
