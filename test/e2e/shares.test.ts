// Two tenants on one server: one of them floods it, and the requests of the other succeed.

import { describe, expect, onTestFinished, test } from "vitest";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";

const HEADER = { scheme: "header", trusted_proxies: ["127.0.0.0/8"] };

/** A server behind a gateway, which serves several tenants. */
const serveTenants = ({ config, ...options }: ServerOptions) =>
  startServer({ ...options, config: { auth: HEADER, ...config } });

const as = (tenant: string, user = "ada") => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": "read run tools",
});

const leaving = (viewer: Viewer): Viewer => {
  onTestFinished(() => viewer.leave());
  return viewer;
};

describe("a tenant that opens all the event streams that it gets", () => {
  const flood = async (url: string) => {
    const open: Viewer[] = [];
    for (;;) {
      const viewer = leaving(await view(`${url}/events`, { headers: as("flood") }));
      if (viewer.status !== 200) return { open, refused: viewer };
      open.push(viewer);
    }
  };

  test("is refused at its share with an error that says so, and another tenant's streams open", async () => {
    const { url } = await serveTenants({ config: { limits: { streams: 16 } } });
    const { open, refused } = await flood(url);
    expect(open).toHaveLength(14);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("5");
    const again = await fetch(`${url}/events`, { headers: as("flood", "eve") });
    expect(await again.json()).toMatchObject({
      code: "limit_exceeded",
      detail: expect.stringMatching(/has 14 of the 16 event streams of this server \(`limits.streams`\)/),
      details: { limit: "limits.streams", of: "tenant", most: 14, retry_after_ms: 5000 },
    });

    const run = await post(`${url}/threads/t/runs`, { input: "go" }, as("other"));
    expect((await run.ended()).at(-1)).toMatchObject({ event: "done" });
    expect(leaving(await view(`${url}/events`, { headers: as("other") })).status).toBe(200);
  });

  test("gets none of the streams that it gives up while another one uses its half", async () => {
    const { url } = await serveTenants({ config: { limits: { streams: 16 } } });
    const { open } = await flood(url);
    const other = leaving(await view(`${url}/events`, { headers: as("other") }));
    expect(other.status).toBe(200);
    for (const viewer of open.slice(0, 3)) viewer.leave();
    // 11 of 16 are more than half.
    await expect
      .poll(async () => leaving(await view(`${url}/events`, { headers: as("other") })).status)
      .toBe(200);
    expect((await fetch(`${url}/events`, { headers: as("flood") })).status).toBe(429);
  });

  test("has all of them where there is no other tenant", async () => {
    const { url } = await startServer({ config: { limits: { streams: 3 } } });
    for (let n = 0; n < 3; n++) expect(leaving(await view(`${url}/events`)).status).toBe(200);
    expect((await fetch(`${url}/events`)).status).toBe(503);
  });
});
