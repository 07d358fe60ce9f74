import { expect, onTestFinished, test } from "vitest";
import { assistantMessage, userMessage } from "../../../src/agent/core/message.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { sessionsOf } from "../../../src/skein/adapters/index.ts";
import { agentWith, runtimeWith } from "../../support/library.ts";

function open() {
  const stores = createMemoryStores();
  onTestFinished(() => stores.close());
  return { stores, sessions: sessionsOf(stores) };
}

test("the current session is created if there is none, once for all simultaneous requests", async () => {
  const { sessions } = open();
  const [one, two] = await Promise.all([sessions.current(), sessions.current()]);
  expect(one).toMatchObject({ title: "New Session" });
  expect(two?.id).toBe(one?.id);
  expect((await sessions.current()).id).toBe(one?.id);
  expect(await sessions.list()).toHaveLength(1);
});

test("a new session is the current one until another is selected, or it is deleted", async () => {
  const { sessions } = open();
  const first = await sessions.create("First");
  const second = await sessions.create("Second");
  expect((await sessions.current()).id).toBe(second.id);
  expect(await sessions.setCurrent(first.id)).toBe(true);
  expect(await sessions.setCurrent("missing")).toBe(false);
  expect((await sessions.current()).title).toBe("First");
  expect(await sessions.delete(first.id)).toBe(true);
  expect(await sessions.delete(first.id)).toBe(false);
  const third = await sessions.current();
  expect(third.title).toBe("New Session");
  expect(await sessions.get(first.id)).toBeUndefined();
  await sessions.delete(third.id);
  expect(await sessions.get((await sessions.current()).id)).toMatchObject({ title: "New Session" });
});

test("a session's messages can be added, read as a copy, and cleared; an agent can continue it", async () => {
  const { stores, sessions } = open();
  const { id } = await sessions.create("Talk");
  expect(await sessions.addMessage(id, userMessage("Hello"))).toBe(true);
  expect(await sessions.addMessage(id, assistantMessage("Hi."))).toBe(true);
  expect(await sessions.addMessage("missing", userMessage("Hello"))).toBe(false);
  const owner = { tenant: "default", user: "default" };
  const [run] = (await stores.runs.list(owner, id, { limit: 1 })).items;
  for await (const [first] of stores.events.read(
    { owner, thread_id: id, run_id: run?.id ?? "" },
    0,
    AbortSignal.timeout(60_000),
  ))
    expect(first).toMatchObject({ seq: 1, json: expect.stringContaining(`"attempt":${run?.attempt}`) });
  (await sessions.getMessages(id)).pop();
  expect(await sessions.getMessages(id)).toHaveLength(2);
  const agent = agentWith(({ messages }) => ({ say: `heard ${messages.length}` }));
  const handle = runtimeWith({ stores }).spawn(agent, { thread: id, input: "And?" });
  expect((await handle.result).text).toBe("heard 3");
  expect(await sessions.updateTitle(id, "A long talk")).toBe(true);
  expect(await sessions.clearMessages(id)).toBe(true);
  expect(await sessions.getMessages(id)).toEqual([]);
  expect((await sessions.get(id))?.title).toBe("A long talk");
});

test("users have separate sessions", async () => {
  const { stores, sessions } = open();
  const { id } = await sessions.create("Mine");
  const others = sessionsOf(stores, { user: "bob" });
  expect(await others.get(id)).toBeUndefined();
  expect(await others.setCurrent(id)).toBe(false);
});
