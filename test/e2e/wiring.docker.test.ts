// The settings of Docker backends reach them, through the real process.

import { expect, test } from "vitest";
import { describeWithOwnEngine, moreEngines } from "../support/engine.ts";
import { serveWith } from "../support/process.ts";
import { view } from "../support/sse.ts";

const as = (tenant: string, user: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": "read run",
});

describeWithOwnEngine("a server with Docker backends", (engine) => {
  test("uses DOCKER_HOST, the deployment and the caps of its settings, and notifies its users", async () => {
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
    await expect.poll(() => listener.others.join()).toMatch(/event: backend_status\ndata: .*"running"/);
    listener.leave();
    const [container] = await engine.docker.listContainers();
    expect(container?.Labels["skein.deployment"]).toBe("wired");

    expect(await start("acme", "bob")).toMatchObject({ status: 429, body: { code: "limit_exceeded" } });
    expect((await start("other", "eve")).status).toBe(200);
    expect(await start("third", "eve")).toMatchObject({ status: 503, body: { code: "unavailable" } });
  });

  test("refuses a tenant more total disk than its settings allow", async () => {
    const { url } = await serveWith(
      { backends: { docker: { deployment: "bounded", disk_per_tenant: "48m" } } },
      {
        agent: { backend: { type: "docker", image: await engine.image("busybox"), disk: "32m" } },
        env: { DOCKER_HOST: engine.host, AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" },
      },
    );
    const start = (user: string) =>
      fetch(`${url}/backend/start`, { method: "POST", headers: as("acme", user) });
    expect((await start("ada")).status).toBe(200);
    const refused = await start("bob");
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ details: { limit: "backends.docker.disk_per_tenant" } });
  });

  test("works with several engines, and shows operators which of them is unavailable and where each sandbox is", async () => {
    const [second] = await moreEngines([[]]);
    if (!second) throw new Error("There is no second engine.");
    const engines = [
      { name: "one", host: engine.host },
      { name: "two", host: second.host },
    ];
    const image = await engine.image("busybox");
    await second.image("busybox");
    const { url } = await serveWith(
      { backends: { docker: { deployment: "several", engines } } },
      {
        agent: { backend: { type: "docker", image, memory: "256m", tmp: "32m" } },
        env: { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" },
      },
    );
    const operator = { ...as("acme", "root"), "x-skein-scopes": "read run admin" };
    const ask = async (path: string, headers: Record<string, string>, method = "GET") => {
      const answer = await fetch(url + path, { method, headers });
      return { status: answer.status, body: await answer.json() };
    };
    for (const user of ["ada", "bob"])
      expect((await ask("/backend/start", as("acme", user), "POST")).status).toBe(200);
    const { body } = await ask("/admin/sandboxes", operator);
    const held = (body as { items: { user: string; engine: string }[] }).items;
    expect(held.map(({ user, engine }) => `${user} on ${engine}`).sort()).toEqual([
      "ada on one",
      "bob on two",
    ]);
    expect(await ask("/ready?verbose", operator)).toMatchObject({
      status: 200,
      body: {
        dependencies: [
          { name: "store" },
          { name: "backends" },
          { name: "engine one" },
          { name: "engine two" },
        ],
      },
    });

    await second.stop();
    await expect
      .poll(async () => (await ask("/ready?verbose", operator)).body)
      .toMatchObject({
        status: "ready",
        dependencies: [
          { status: "up" },
          { status: "up" },
          { status: "up" },
          { name: "engine two", status: "down" },
        ],
      });
    expect((await ask("/backend/start", as("acme", "eve"), "POST")).status).toBe(200);
    await engine.stop();
    await expect.poll(async () => (await ask("/ready", operator)).status).toBe(503);
    await engine.start();
    await expect.poll(async () => (await ask("/ready", operator)).status).toBe(200);
  });
});
