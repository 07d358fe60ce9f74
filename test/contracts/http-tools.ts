// What every store of HTTP tools promises.

import { describe, expect, test } from "vitest";
import type { HttpTool } from "../../src/agent/tools/http/registration.ts";
import { createHttpToolStore, type HttpToolStore } from "../../src/agent/tools/http/store.ts";
import { inWorld, type Open } from "../engine/stores/fixture.ts";

const MIB = 1024 * 1024;

const tool = (name: string, more: Partial<HttpTool> = {}): HttpTool => ({
  ...{ name, description: "Says the weather.", parameters: { type: "object" } },
  ...{ callback_url: "https://tools.example.com/weather", headers: { authorization: "Bearer key" } },
  ...{ timeout_ms: 30_000, idempotent: false, annotations: {}, agents: ["*"] },
  ...{ secret: "whsec_c2VjcmV0", created_at: "2026-11-21T10:00:00.000Z" },
  ...more,
});

export function httpToolsContract(open: Open): void {
  const withTools = (body: (tools: HttpToolStore) => Promise<void>) =>
    inWorld(open, ({ stores }) => body(createHttpToolStore(stores.documents, MIB)));

  describe("a tool that is put", () => {
    test("is stored completely, including its secret and headers", () =>
      withTools(async (tools) => {
        const whole = tool("weather", {
          parameters: JSON.parse(
            '{"type": "object", "properties": {"__proto__": {}, "a": {"enum": [null]}}}',
          ),
          annotations: { read_only: true, category: "read" },
          agents: ["research-*", "helper"],
        });
        await tools.put("acme", whole);
        const kept = await tools.get("acme", "weather");
        expect(kept).toEqual(whole);
        expect(JSON.stringify(kept)).toBe(JSON.stringify(whole));
      }));

    test("can be changed; simultaneous changes are all kept, and a missing tool is not created", () =>
      withTools(async (tools) => {
        await tools.put("acme", tool("weather"));
        const add = (name: string) =>
          tools.change("acme", "weather", async (before) => ({
            ...before,
            headers: { ...before.headers, [name]: "1" },
          }));
        await Promise.all(["a", "b", "c", "d"].map(add));
        const kept = await tools.get("acme", "weather");
        expect(Object.keys(kept?.headers ?? {}).sort()).toEqual(["a", "authorization", "b", "c", "d"]);
        expect(kept).not.toHaveProperty("previous");
        expect(await tools.change("acme", "other", async (before) => before)).toBeUndefined();
        expect(await tools.get("acme", "other")).toBeUndefined();
      }));

    test("is listed for the agents that it names, in its newest version", () =>
      withTools(async (tools) => {
        const agents = ["helper", "research-fast", "research", "helper2", ""];
        const given = async () => {
          const lists = await Promise.all(agents.map((agent) => tools.listFor("acme", agent)));
          return agents.filter((_, index) => lists[index]?.length);
        };
        await tools.put("acme", tool("weather", { agents: ["helper", "research-*"] }));
        expect(await given()).toEqual(["helper", "research-fast"]);
        await tools.put("acme", tool("weather", { agents: ["helper2"] }));
        expect(await given()).toEqual(["helper2"]);
        expect(await tools.listFor("good", "helper2")).toEqual([]);
      }));

    test("is refused if all tools would exceed the allowed bytes, but can replace a larger one of its name", () =>
      inWorld(open, async ({ stores }) => {
        const large = tool("weather", { description: "x".repeat(600) });
        const most = JSON.stringify(large).length + 400;
        const tools = createHttpToolStore(stores.documents, most);
        await tools.put("acme", large);
        const refused = tools.put("acme", tool("ships", { description: "x".repeat(600) }));
        await expect(refused).rejects.toMatchObject({
          code: "limit_exceeded",
          message: expect.stringContaining(`more than ${most} bytes in total (http_tools.bytes)`),
        });
        await tools.put("good", large);
        await tools.put("acme", tool("weather"));
        expect(await tools.list("acme")).toMatchObject([tool("weather")]);
      }));

    test("replaces the tool with its name", () =>
      withTools(async (tools) => {
        await tools.put("acme", tool("weather"));
        await tools.put("acme", tool("weather", { description: "Newer." }));
        // Its calls are signed with the former secret as well, for a while.
        const previous = { secret: tool("weather").secret, until: expect.any(String) };
        expect(await tools.list("acme")).toEqual([tool("weather", { description: "Newer.", previous })]);
      }));

    test("does not change if the caller changes its own copy, before or after", () =>
      withTools(async (tools) => {
        const mine = tool("weather");
        await tools.put("acme", mine);
        mine.headers.authorization = "changed";
        const read = await tools.get("acme", "weather");
        if (read) read.agents.push("changed");
        expect(await tools.get("acme", "weather")).toEqual(tool("weather"));
      }));
  });

  test("the list is ordered by name, not by registration", () =>
    withTools(async (tools) => {
      for (const name of ["b", "Z", "a_2", "a-1", "a"]) await tools.put("acme", tool(name));
      expect((await tools.list("acme")).map(({ name }) => name)).toEqual(["Z", "a", "a-1", "a_2", "b"]);
    }));

  test("deleting removes only that tool, of that tenant", () =>
    withTools(async (tools) => {
      for (const name of ["a", "b"]) await tools.put("acme", tool(name));
      await tools.put("Acme", tool("a"));
      expect(await tools.delete("acme", "a")).toBe(true);
      expect(await tools.delete("acme", "a")).toBe(false);
      expect(await tools.get("acme", "a")).toBeUndefined();
      expect(await tools.list("acme")).toEqual([tool("b")]);
      expect(await tools.list("Acme")).toEqual([tool("a")]);
    }));

  test("a tenant can have at most a hundred, and can still replace them", () =>
    withTools(async (tools) => {
      const names = Array.from({ length: 105 }, (_, n) => `t${n}`);
      const outcomes = await Promise.allSettled(names.map((name) => tools.put("acme", tool(name))));
      const refused = outcomes.filter(({ status }) => status === "rejected");
      expect(refused).toHaveLength(5);
      for (const each of refused) expect(each).toMatchObject({ reason: { code: "limit_exceeded" } });
      await tools.put("acme", tool("t7", { description: "Newer." }));
      await tools.put("other", tool("t200"));
      await tools.delete("acme", "t8");
      await tools.put("acme", tool("t200"));
      expect(await tools.list("acme")).toHaveLength(100);
    }));
}
