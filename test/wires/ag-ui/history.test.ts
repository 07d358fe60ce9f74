// Pages that leave, come back and change what was said, with AG-UI's own client, against the whole server.

import { describe, expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { statusesOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { until } from "../../support/until.ts";
import { FILE_AGENTS } from "../agents.ts";
import {
  essence,
  newAgent,
  type PageOptions,
  reopened,
  say,
  started,
  texts,
  VERSIONS,
} from "./http-agent.ts";

describe.each(VERSIONS)("HttpAgent %s", (_version, Client) => {
  test("stops the run when it leaves, and accepts the next message", async () => {
    const { url, agent } = await started(Client, [
      { say: "a ".repeat(500), delay_ms: 20 },
      { say: "Here again." },
    ]);
    const sending = say(agent, "go");
    await until(() => texts(agent).length > 1);
    agent.abortRun();
    await sending;
    await until(async () => (await statusesOf(url, "t1"))[0] === "cancelled");
    const again = await reopened(Client, url);
    await say(again, "and now?");
    expect(texts(again).at(-1)).toBe("assistant: Here again.");
  });

  test("lets the run continue when it leaves, if it requests that", async () => {
    const { tool, open, entered } = gate();
    const { url, agent } = await started(Client, gated, { tools: [tool], agents: WITH_GATE });
    const sending = say(agent, "go", { forwardedProps: { on_disconnect: "continue" } });
    await entered;
    agent.abortRun();
    await sending;
    open();
    await until(async () => (await statusesOf(url, "t1"))[0] === "success");
    expect(texts(await reopened(Client, url)).at(-1)).toBe("assistant: Through.");
  });

  test("that is opened during an answer shows the whole answer once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, agent } = await started(Client, [
      { say: "First.", call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      { say: words, delay_ms: 20 },
    ]);
    const sending = say(agent, "go");
    await until(() => texts(agent).some((text) => text.includes("word3")));
    const again = await reopened(Client, url);
    await sending;
    expect(texts(again).at(-1)).toBe(`assistant: ${words}`);
    expect(essence(again)).toEqual(essence(agent));
    expect(again.state).toEqual(agent.state);
  });

  test("replaces the first answer with another", async () => {
    const { url, agent } = await started(Client, [{ say: "One." }, { say: "Two." }]);
    await say(agent, "count");
    agent.setMessages(agent.messages.slice(0, 1));
    await agent.runAgent();
    expect(texts(agent)).toEqual(["user: count", "assistant: Two."]);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test("edits a message: later ones are removed on both sides", async () => {
    const { url, agent } = await started(Client, [{ say: "A." }, { say: "B." }, { say: "C." }]);
    await say(agent, "first");
    await say(agent, "second");
    const [first, ...rest] = agent.messages;
    agent.setMessages([{ id: first?.id ?? "", role: "user", content: "other" }]);
    await agent.runAgent();
    expect(texts(agent)).toEqual(["user: other", "assistant: C."]);
    expect(rest).toHaveLength(3);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test("that has none of the thread's messages adds to it", async () => {
    const { url, agent } = await started(Client, [{ say: "A." }, { say: "B." }, { say: "C." }]);
    await say(agent, "first");
    await say(agent, "second");
    const stranger = newAgent(Client, url);
    await say(stranger, "third");
    expect(texts(await reopened(Client, url))).toEqual([...texts(agent), "user: third", "assistant: C."]);
  });

  test("replaces a message that it has dropped from its list", async () => {
    const { url, agent } = await started(Client, [{ say: "A." }, { say: "B." }, { say: "C." }]);
    await say(agent, "first");
    await say(agent, "second");
    agent.setMessages(agent.messages.slice(0, 2));
    await say(agent, "instead");
    expect(texts(agent)).toEqual(["user: first", "assistant: A.", "user: instead", "assistant: C."]);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test.each(["memory", "sqlite"])(
    "shows an error if a server with %s shuts down during an answer, because half an answer is not the answer",
    async (store) => {
      const { agent, app } = await started(Client, [{ say: "a ".repeat(500), delay_ms: 20 }], {
        config: { store },
      });
      const codes: unknown[] = [];
      const sending = say(agent, "go", undefined, {
        onRunErrorEvent: ({ event }) => void codes.push(event.code),
      });
      await until(() => texts(agent).length > 1);
      await app.close();
      await sending;
      expect(codes).toEqual(["shutting_down"]);
    },
  );

  test("of two users with one thread id reaches separate threads", async () => {
    const { url } = await startServer({
      script: () => ({ say: "For {{user}}." }),
      agents: FILE_AGENTS,
      config: BEHIND_GATEWAY,
    });
    const as = (user: string, route: PageOptions["route"] = "run") =>
      newAgent(Client, url, { route: route ?? "run", headers: asUser(user) });
    const [ada, bob] = [as("ada"), as("bob")];
    await say(ada, "ada's word");
    const page = as("bob", "connect");
    await page.runAgent();
    expect(page.messages).toEqual([]);
    const stopped = await fetch(`${url}/ag-ui/agent/assistant/stop/t1`, {
      method: "POST",
      headers: asUser("bob"),
    });
    expect(await stopped.json()).toEqual({ stopped: false });
    await say(bob, "bob's word");
    await say(ada, "more of ada's");
    const again = as("bob", "connect");
    await again.runAgent();
    expect(texts(again)).toEqual(["user: bob's word", "assistant: For bob's word."]);
    expect(texts(ada)).toHaveLength(4);
  });
});
