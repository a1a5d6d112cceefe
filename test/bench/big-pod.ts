// SPDX-License-Identifier: Apache-2.0
import type { Json } from "../support/objects.ts";

/** As large as pods are: some 3 kB of environment, probes, volumes and tolerations. */
export function bigPod(made: Json): Json {
  const env = Array.from({ length: 24 }, (_, i) => ({
    name: `SETTING_${i}`,
    value: `a value of some length, number ${i}`,
  }));
  const probe = {
    httpGet: { path: "/healthz", port: 8080, scheme: "HTTP" },
    periodSeconds: 10,
    timeoutSeconds: 1,
  };
  const volumes = ["data", "config", "token"].map((name) => ({ name, emptyDir: {} }));
  const main = {
    name: "main",
    image: "registry.example/app:1",
    env,
    livenessProbe: probe,
    readinessProbe: probe,
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/var/lib/${name}` })),
  };
  const keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
  const tolerations = keys.map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }));
  return { ...made, spec: { containers: [main], volumes, tolerations, serviceAccountName: "default" } };
}
