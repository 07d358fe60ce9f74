// Against servers that hang, crash, lie and flood: a call has a result in words, and nothing is left behind.

import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { call, eventually, hostile, namesOf, type Opened, open, opened } from "./opened.ts";

/** The server, once for each of the two processes that its tool `hang` has started before it blocks. */
async function parentsOfSleep(servers: Opened): Promise<number[]> {
  const stats = (await servers.processes()).map((pid) =>
    readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""),
  );
  return (await Promise.all(stats)).flatMap((stat) => {
    const [, parent] = /\(sleep\) \S (\d+)/.exec(stat) ?? [];
    return parent ? [Number(parent)] : [];
  });
}

/** Calls `echo`, and once more after each silence that a busy machine makes of its own. */
async function echoed(servers: Opened, name: string) {
  for (let count = 1; ; count++) {
    const outcome = await call(servers, `mcp__${name}__echo`, { a: 1 });
    if (count === 10 || !outcome.error?.includes("sent nothing for 2 s")) return outcome;
  }
}

describe("a call", () => {
  test.each(["normal", "newest"])(
    "that is cancelled on a hung server (%s) ends immediately, and the server with its processes soon after",
    async (mode) => {
      const servers = await opened({ bad: hostile(mode) });
      const cancel = new AbortController();
      const calling = call(servers, "mcp__bad__hang", {}, { input: { signal: cancel.signal } });
      await eventually(async () => expect(await parentsOfSleep(servers)).toHaveLength(2));
      const [server] = await parentsOfSleep(servers);
      cancel.abort();
      const { outcome, error } = await calling;
      expect(process.kill(Number(server), 0)).toBe(true);
      expect(outcome.status).toBe("cancelled");
      expect(error).toContain("Cancelled");
      await eventually(async () => expect(await servers.processes()).not.toContain(server));
      expect(await call(servers, "mcp__bad__echo", { a: 1 })).toMatchObject({
        error: undefined,
        text: '{"a":1}',
      });
    },
  );

  test("that is silent for too long is abandoned", async () => {
    const servers = await opened({ bad: hostile("normal", { idle_timeout: 2 }) });
    const { error, outcome } = await call(servers, "mcp__bad__forget");
    expect(error).toBe(
      "MCP server `bad` sent nothing for 2 s. The call was abandoned; its effect is unknown.",
    );
    expect(outcome.status).toBe("success");
    const [before] = await servers.processes();
    expect((await echoed(servers, "bad")).error).toBeUndefined();
    expect(await servers.processes()).toContain(before);
  });

  test("that reports progress can take longer than the allowed silence", async () => {
    const servers = await opened({ bad: hostile("normal", { idle_timeout: 2 }) });
    const { text, shown } = await call(servers, "mcp__bad__tell_progress");
    expect(text).toBe("through");
    expect(shown.join("")).toBe("1/3 step 1\n2/3 step 2\n3/3 step 3\n");
  });

  test("shows at most a thousand of its progress updates", async () => {
    const servers = await opened({ bad: hostile() });
    const { text, shown } = await call(servers, "mcp__bad__tell_much");
    expect(text).toBe("through");
    expect(shown.join("").trimEnd().split("\n")).toHaveLength(1000);
  });

  test("that reports progress without end still times out", async () => {
    const servers = await opened({ bad: hostile("normal", { timeout: 0.6 }) });
    expect((await call(servers, "mcp__bad__tell_progress")).error).toContain("did not end within 0.6 s");
  });

  test("that crashes the server reports the crash, and the next call restarts the server", async () => {
    const servers = await opened({ bad: hostile() });
    expect((await call(servers, "mcp__bad__crash")).error).toBe(
      "MCP server `bad` ended (exit code 3) during the call, so its effect is unknown.",
    );
    expect((await call(servers, "mcp__bad__echo")).error).toBeUndefined();
    await eventually(() =>
      expect(servers.log.join("\n")).toContain("warn MCP server `bad` ended (exit code 3)"),
    );
  });

  describe("a call to a server that survives", () => {
    let servers: Opened;
    beforeAll(async () => {
      servers = await open({ bad: hostile() });
      return servers.end;
    });

    test.each([
      ["lie", /does not respond like an MCP server/],
      ["fail", /^it is broken$/],
      ["refuse", /returned an error: .*wrong arguments/],
    ])("that gets an invalid answer (%s) fails with a readable error", async (tool, words) => {
      const { error, outcome } = await call(servers, `mcp__bad__${tool}`);
      expect(error).toMatch(words);
      expect(outcome.status).toBe("success");
    });

    test.each(["garble", "chatter"])("finds its answer among noise (%s)", async (tool) => {
      expect(await call(servers, `mcp__bad__${tool}`)).toMatchObject({ text: "through", error: undefined });
      expect(servers.log.length).toBeLessThan(300);
      expect(Math.max(...servers.log.map((line) => line.length))).toBeLessThan(1500);
    });

    test("gets the beginning and the end of a long text", async () => {
      const { text } = await call(servers, "mcp__bad__long_text");
      expect(text).toMatch(/^x{1000}/);
      expect(text).toMatch(/characters left out[\s\S]*x{1000}$/);
      expect(text.length).toBeLessThanOrEqual(400_000);
    });

    test("gets its own result among concurrent calls", async () => {
      const results = await Promise.all(
        Array.from({ length: 60 }, (_, number) => call(servers, "mcp__bad__echo", { number })),
      );
      expect(results.map(({ text }) => text)).toEqual(
        Array.from({ length: 60 }, (_, number) => `{"number":${number}}`),
      );
    });
  });

  test("whose answer never ends fails with a readable error", async () => {
    const servers = await opened({ bad: hostile() });
    expect((await call(servers, "mcp__bad__endless_line")).error).toContain("during the call");
  });
});

test("one user's hanging calls leave capacity for others, and excess ones are refused with a readable error", async () => {
  const servers = await opened({ bad: hostile("normal", { timeout: 600 }) });
  const enough = new AbortController();
  const greedy = { input: { owner: { tenant: "t", user: "greedy" }, signal: enough.signal } };
  let ended = 0;
  const hanging = Array.from({ length: 80 }, () =>
    call(servers, "mcp__bad__forget", {}, greedy).finally(() => ended++),
  );
  for (const owner of [
    { tenant: "t", user: "other" },
    { tenant: "other", user: "greedy" },
  ])
    expect((await call(servers, "mcp__bad__echo", {}, { input: { owner } })).error).toBeUndefined();
  await expect.poll(() => ended).toBe(8);
  enough.abort();
  const errors = (await Promise.all(hanging)).map(({ error }) => error);
  expect(errors.filter((error) => error?.includes("too many waiting calls"))).toHaveLength(8);
});

describe("a server that", () => {
  test.each([
    ["mute", 0.5, "did not answer within 0.5 s"],
    ["exits", 60, "ended (exit code 7)"],
  ])("never starts (%s) offers nothing and is tried again", async (mode, connect_timeout, why) => {
    const servers = await opened({ bad: hostile(mode, { connect_timeout }), good: hostile() });
    expect(namesOf(servers)).toContain("mcp__good__echo");
    expect(namesOf(servers)).not.toContain("mcp__bad__echo");
    expect(servers.log.join("\n")).toContain(`\`bad\` ${why}; will retry`);
    await eventually(() =>
      expect(servers.log.filter((line) => line.includes(why)).length).toBeGreaterThan(1),
    );
  });

  test("does not exist, or has no folder to run in, is logged", async () => {
    const nowhere = { command: "true", cwd: "/no/such/folder" };
    const servers = await opened({ absent: { command: "no-such-program" }, nowhere });
    expect(servers.log.join("\n")).toContain("`absent` has no such command");
    expect(servers.log.join("\n")).toContain("`nowhere` cannot be started (ENOENT)");
  });

  test("dies after listing keeps its tools, whose calls fail with a readable error", async () => {
    const servers = await opened({ bad: hostile("dies-after-list") });
    await eventually(() => expect(namesOf(servers)).toContain("mcp__bad__echo"));
    for (const _ of [1, 2, 3]) {
      const { error, outcome } = await call(servers, "mcp__bad__echo");
      expect(error).toContain("MCP server `bad` ");
      expect(outcome.status).toBe("success");
    }
  });

  test("supports only the newest revision works", async () => {
    const servers = await opened({ new: hostile("newest", { idle_timeout: 2 }) });
    const { text, shown } = await call(servers, "mcp__new__tell_progress");
    expect(text).toBe("through");
    expect(shown).toHaveLength(3);
    expect((await call(servers, "mcp__new__forget")).error).toContain("sent nothing for 2 s");
    expect((await echoed(servers, "new")).text).toBe('{"a":1}');
  });

  test("fails when asked for a newer revision is called in the old one", async () => {
    const servers = await opened({ old: hostile("breaks-when-probed") });
    expect((await call(servers, "mcp__old__echo", { a: 1 })).text).toBe('{"a":1}');
  });

  test("floods us leaves time for other work", async () => {
    const servers = await opened({ bad: hostile("flood"), good: hostile() });
    let ticks = 0;
    const timer = setInterval(() => ticks++, 10);
    for (const _ of Array(20)) expect((await call(servers, "mcp__good__echo")).error).toBeUndefined();
    await eventually(() => expect(ticks).toBeGreaterThan(20));
    clearInterval(timer);
  });

  test("refuses to end is killed", async () => {
    const servers = await opened({ bad: hostile("stays") });
    expect(await servers.processes()).not.toEqual([]);
    await servers.close();
    expect(await servers.processes()).toEqual([]);
  });
});

describe("a list of tools", () => {
  test("that is empty counts as absent, and is requested again until it has tools", async () => {
    const servers = await opened({ s: hostile("empty-first") });
    expect(servers.absent()).toEqual([{ server: "s", why: "lists no tools" }]);
    await expect.poll(() => servers.tools().length).toBeGreaterThan(0);
    expect(servers.absent()).toEqual([]);
  });

  test("with thousands of tools is limited, and the log names what is left out", async () => {
    const servers = await opened({ bad: hostile("many") });
    expect(namesOf(servers)).toHaveLength(128);
    expect(servers.log.join("\n")).toContain("after the first 128: select");
  });

  test("is limited to the operator's selection", async () => {
    const tools = { include: ["tool_*"], exclude: ["tool_?", "tool_[!3]?", "tool_???*"] };
    const servers = await opened({ bad: hostile("many", { tools }) });
    expect(namesOf(servers)).toEqual(Array.from({ length: 10 }, (_, digit) => `mcp__bad__tool_3${digit}`));
  });

  test("with errors provides its usable entries", async () => {
    const servers = await opened({ bad: hostile("strange") });
    expect(namesOf(servers)).toEqual([
      expect.stringMatching(/^mcp__bad__a_b$/),
      expect.stringMatching(/^mcp__bad__a_b_[0-9a-f]{8}$/),
      expect.stringMatching(/^mcp__bad__a_b_[0-9a-f]{8}$/),
      "mcp__bad__echo",
      expect.stringMatching(/^mcp__bad__n+_[0-9a-f]{8}$/),
      "mcp__bad__top",
    ]);
    for (const name of namesOf(servers)) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    const tool = (name: string) => servers.tools().find((each) => each.name === `mcp__bad__${name}`);
    expect(tool("echo")?.description).toHaveLength(4096);
    expect(tool("top")?.parameters).toEqual({ type: "object", properties: { a: {} } });
    expect(tool("a_b")?.annotations).toEqual({ destructive: true, idempotent: true });
    expect(servers.tools().map(({ annotations }) => annotations)).toContainEqual({ idempotent: true });
    const trusted = await opened({ bad: { ...hostile("strange"), trust_annotations: true } });
    expect(trusted.tools().map(({ annotations }) => annotations)).toContainEqual({
      ...{ readOnly: true, destructive: false, category: "network" },
    });
  });

  test("that has changed is read again", async () => {
    const servers = await opened({ bad: hostile() });
    expect(namesOf(servers)).not.toContain("mcp__bad__grown");
    await call(servers, "mcp__bad__grow");
    await eventually(() => expect(namesOf(servers)).toContain("mcp__bad__grown"));
  });

  test("that is old is read again at the next use", async () => {
    const servers = await opened({ bad: hostile("normal", { refresh: 0.05 }) });
    const before = servers.tools();
    await eventually(() => expect(servers.tools()).not.toBe(before));
  });

  test("that changes constantly is read only occasionally", async () => {
    const servers = await opened({ bad: hostile("restless") });
    const lists = () => servers.log.filter((line) => line.includes("lists")).length;
    await eventually(() => expect(lists()).toBeGreaterThan(2));
    expect(lists()).toBeLessThan(10);
  });
});
