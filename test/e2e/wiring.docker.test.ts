// The settings of Docker backends reach them, through the real process.

import { expect, test } from "vitest";
import { describeWithOwnEngine } from "../support/engine.ts";
import { serveWith } from "../support/process.ts";
import { view } from "../support/sse.ts";

const as = (tenant: string, user: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": "read run",
});

describeWithOwnEngine("a server with Docker backends", (engine) => {
  test("keeps to DOCKER_HOST, the deployment and the caps of its settings, and tells its users", async () => {
    const { url } = await serveWith(
      { backends: { docker: { deployment: "wired", sandboxes: 2, sandboxes_per_tenant: 1 } } },
      {
        agent: {
          backend: { type: "docker", image: await engine.image("busybox"), memory: "256m", tmp: "32m" },
        },
        env: { DOCKER_HOST: engine.host, AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" },
      },
    );
    const start = async (tenant: string, user: string) => {
      const answer = await fetch(`${url}/backend/start`, { method: "POST", headers: as(tenant, user) });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const listener = await view(`${url}/events`, { headers: as("acme", "ada") });
    expect(await start("acme", "ada")).toMatchObject({ status: 200, body: { status: "running" } });
    await expect
      .poll(() => listener.others.join(), { timeout: 20_000 })
      .toMatch(/event: backend_status\ndata: .*"running"/);
    listener.leave();
    const [container] = await engine.docker.listContainers();
    expect(container?.Labels["skein.deployment"]).toBe("wired");

    expect(await start("acme", "bob")).toMatchObject({ status: 429, body: { code: "limit_exceeded" } });
    expect((await start("other", "eve")).status).toBe(200);
    expect(await start("third", "eve")).toMatchObject({ status: 503, body: { code: "unavailable" } });
  });
});
