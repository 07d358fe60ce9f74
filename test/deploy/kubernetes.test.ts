// deploy/kubernetes with kubectl, held against the types of Kubernetes, the image, and what the server reads.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { needing } from "../support/needing.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { expectStartable, IMAGE_FACTS, unread } from "./support/facts.ts";
import { exampleWith, faultsOf, type Manifest } from "./support/kubernetes.ts";
import { hasProgram } from "./support/programs.ts";

const SECRETS = {
  BOOTSTRAP_API_KEY: newApiKey().key,
  OPENAI_API_KEY: "sk-1",
  REDIS_PASSWORD: "secret",
  REDIS_URL: "redis://:secret@redis:6379/0",
};

const Labels = z.record(z.string(), z.string());
const Named = z.object({ name: z.string() });
const Pods = z.object({
  spec: z.object({
    template: z.object({
      metadata: z.object({ labels: Labels }),
      spec: z.looseObject({
        securityContext: z.looseObject({}),
        containers: z.tuple([
          z.looseObject({
            ports: z.array(Named.extend({ containerPort: z.int() })),
            securityContext: z.looseObject({}),
            volumeMounts: z.array(
              Named.extend({ mountPath: z.string(), readOnly: z.boolean().default(false) }),
            ),
          }),
        ]),
        volumes: z.array(z.looseObject({ name: z.string() })).default([]),
      }),
    }),
  }),
});
const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.literal("http") }) });
const Server = z.object({
  envFrom: z.tuple([z.object({ configMapRef: Named }), z.object({ secretRef: Named })]),
  startupProbe: Probe,
  livenessProbe: Probe,
  readinessProbe: Probe,
  lifecycle: z.object({ preStop: z.object({ sleep: z.object({ seconds: z.int() }) }) }),
});
const Data = z.object({ data: Labels });
const Selecting = z.object({
  spec: z.object({
    selector: z
      .union([z.object({ matchLabels: Labels }).transform((of) => of.matchLabels), Labels])
      .optional(),
    podSelector: z.object({ matchLabels: Labels }).optional(),
  }),
});
const Service = z.object({
  spec: z.object({ selector: Labels, ports: z.tuple([Named.extend({ targetPort: z.string() })]) }),
});
const Ingress = z.object({
  spec: z.object({
    rules: z.tuple([
      z.object({
        http: z.object({
          paths: z.tuple([z.object({ backend: z.object({ service: Named.extend({ port: Named }) }) })]),
        }),
      }),
    ]),
  }),
});

needing(hasProgram("kubectl"), "kubectl").describe("deploy/kubernetes", () => {
  let manifests: readonly Manifest[];
  beforeEach(async () => {
    manifests = await exampleWith(SECRETS);
  });

  const named = (kind: string, name: string): Manifest => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
    if (!found) throw new Error(`There is no ${kind} with the name ${name}.`);
    return found;
  };
  const podsOf = (manifest: Manifest) => {
    const { metadata, spec } = Pods.parse(manifest).spec.template;
    return { labels: metadata.labels, spec, container: spec.containers[0] };
  };
  const workloads = () => [named("Deployment", "skein"), named("StatefulSet", "redis")].map(podsOf);
  const server = () => {
    const pods = podsOf(named("Deployment", "skein"));
    return { ...pods, ...Server.parse(pods.container) };
  };

  test("contains no key that Kubernetes does not know and no invalid value", async () => {
    expect(await faultsOf(manifests)).toEqual([]);
  });

  test("has pods that meet the restricted Pod Security Standard", () => {
    const namespace = { labels: { "pod-security.kubernetes.io/enforce": "restricted" } };
    expect(named("Namespace", "skein").metadata).toMatchObject(namespace);
    for (const { spec, container } of workloads()) {
      expect(Object.keys(spec).filter((key) => key.startsWith("host"))).toEqual([]);
      expect(spec.initContainers).toBeUndefined();
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      for (const { name, ...volume } of spec.volumes)
        expect(["configMap", "emptyDir"]).toContain(Object.keys(volume)[0]);
    }
  });

  test("starts servers with settings that they all use", async () => {
    const { envFrom, spec, container } = server();
    const [{ configMapRef }, { secretRef }] = envFrom;
    const settings = Data.parse(named("ConfigMap", configMapRef.name)).data;
    const secrets = Data.parse(named("Secret", secretRef.name)).data;
    const { REDIS_PASSWORD: _, ...env } = {
      ...settings,
      ...Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, atob(value)])),
    };
    expect(unread(env)).toEqual([]);

    const folder = container.volumeMounts.find(({ mountPath }) =>
      env.AGENTS_FILE?.startsWith(`${mountPath}/`),
    );
    const volume = spec.volumes.find(({ name }) => name === folder?.name);
    const { configMap } = z.object({ configMap: Named }).parse(volume);
    const files = Data.parse(named("ConfigMap", configMap.name)).data;
    const agents = join(await temporaryFolder(), "agents.yaml");
    await writeFile(agents, files[env.AGENTS_FILE?.slice(`${folder?.mountPath}/`.length) ?? ""] ?? "");
    await expectStartable(env, agents);
    expect(env.DATA_DIR).toBe(IMAGE_FACTS.volume);
    expect(Number(env.PORT)).toBe(IMAGE_FACTS.port);
  });

  test("runs the image as its own user, which can write where the server writes", () => {
    const { spec, container } = server();
    const { user, group, volume, port } = IMAGE_FACTS;
    expect(spec.securityContext).toMatchObject({ runAsUser: user, runAsGroup: group, fsGroup: group });
    const writable = container.volumeMounts.filter(({ readOnly }) => !readOnly);
    expect(writable.map(({ mountPath }) => mountPath)).toEqual([volume, "/tmp"]);
    expect(container.ports).toEqual([{ name: "http", containerPort: port }]);
  });

  test("sends probes that the server answers", async () => {
    const { url } = await startServer();
    const { startupProbe, livenessProbe, readinessProbe } = server();
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
      expect((await fetch(url + httpGet.path)).status).toBe(200);
    // A store that is away must not restart the pods.
    expect(livenessProbe.httpGet.path).toBe("/health");
    expect(readinessProbe.httpGet.path).toBe("/ready");
  });

  test("gives a pod longer to stop than it waits for its runs", () => {
    const { spec, lifecycle } = server();
    const needed = lifecycle.preStop.sleep.seconds + ServerConfig.parse({}).shutdown.grace / 1000;
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(needed);
  });

  test("has selectors that select its pods, and services that lead to their ports", () => {
    const pods = workloads().map(({ labels }) => labels);
    for (const manifest of manifests) {
      const { success, data } = Selecting.safeParse(manifest);
      const selector = success ? (data.spec.selector ?? data.spec.podSelector?.matchLabels) : undefined;
      if (selector) expect(pods).toContainEqual(expect.objectContaining(selector));
    }
    const { service } = Ingress.parse(named("Ingress", "skein")).spec.rules[0].http.paths[0].backend;
    const led = Service.parse(named("Service", service.name)).spec;
    expect(led.selector).toEqual(server().labels);
    expect(led.ports[0]).toMatchObject({
      name: service.port.name,
      targetPort: server().container.ports[0]?.name,
    });
  });
});
