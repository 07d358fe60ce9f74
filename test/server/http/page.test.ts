import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { startServer } from "../../support/server.ts";

const get = (url: string, init: RequestInit = {}) => fetch(url, { redirect: "manual", ...init });

describe("the page", () => {
  test("is served at the server's address, under a policy that allows only its own files to run", async () => {
    const { url } = await startServer();
    const page = await get(url);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const policy = page.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("trusted-types 'none'");
    expect(policy).not.toContain("unsafe");
    expect(await page.text()).not.toMatch(/https?:\/\//);
  });

  test("uses immutable file names that browsers never request twice, with compression on request", async () => {
    const { url } = await startServer();
    const names = [...(await (await get(url)).text()).matchAll(/"(page\/[^"]+)"/g)].map(([, name]) => name);
    expect(names.filter((name) => name?.endsWith(".css"))).toHaveLength(2);
    expect(names.filter((name) => name?.endsWith(".js")).length).toBeGreaterThan(0);
    for (const name of names) {
      const [zipped, plain] = await Promise.all(
        ["gzip", "gzip;q=0"].map((encoding) =>
          get(`${url}/${name}`, { headers: { "accept-encoding": encoding } }),
        ),
      );
      expect(zipped?.headers.get("content-encoding")).toBe("gzip");
      expect(plain?.headers.get("content-encoding")).toBe(null);
      expect(await zipped?.text()).toBe(await plain?.text());
      expect(plain?.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    }
  });

  test("serves the drawing frame under its own policy: its scripts, and no requests", async () => {
    const { url } = await startServer();
    const [, name] = /content="(page\/diagram-[^"]+)"/.exec(await (await get(url)).text()) ?? [];
    const frame = await get(`${url}/${name}`);
    const html = await frame.text();
    const hashes = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(
      ([, script = ""]) => `'sha256-${hash("sha256", script, "base64")}'`,
    );
    expect(hashes).toHaveLength(2);
    expect(frame.headers.get("content-security-policy")?.split("; ")).toEqual([
      ...["default-src 'none'", `script-src ${hashes.join(" ")}`, "style-src 'unsafe-inline'"],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'", "sandbox allow-scripts"],
    ]);
    expect(frame.headers.get("x-frame-options")).toBe("SAMEORIGIN");
    expect((await get(url)).headers.get("content-security-policy")).toContain("frame-src 'self'");
  });

  test("serves no other file", async () => {
    const { url } = await startServer();
    for (const name of ["index.html", "..%2fmain.js", "page.js", "style.css.gz"])
      expect((await get(`${url}/page/${name}`)).status).toBe(404);
  });

  test("is absent if the operator turns it off, and the API reference replaces it", async () => {
    const { url } = await startServer({ config: { page: false } });
    const answer = await get(url);
    expect([answer.status, answer.headers.get("location")]).toEqual([302, "docs"]);
  });
});
