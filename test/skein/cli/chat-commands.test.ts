import { expect, onTestFinished } from "vitest";
import { say as sentence } from "../../support/fake-provider/script.ts";
import { startFakeProvider } from "../../support/fake-provider/server.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { startServer } from "../../support/server.ts";
import { chatting, testAtTerminal as test } from "./terminal.ts";

const TWO_AGENTS = `
agents:
  assistant: { model: "openai:gpt-5-mini", description: Helps. }
  coder: { model: "openai:gpt-5" }
`;

const ASKING = "agents: { assistant: { model: 'scripted:test', tools: [ask_user] } }";

async function runOn(url: string, thread: string, run: object): Promise<void> {
  const response = await fetch(`${url}/threads/${thread}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(run),
  });
  await response.text();
}

const post = (url: string, body: object) =>
  fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

const newestRun = async (url: string) =>
  ((await (await fetch(`${url}/runs`)).json()) as { items: { agent: string; thread_id: string }[] }).items[0];

test("/help lists the commands, and an unknown command is not sent as a message", async () => {
  const { url } = await startServer({ script: [{ say: "A path: {{user}}" }] });
  const { say, hear, ended } = chatting(url);
  await say("> ", "/help");
  for (const name of ["/help", "/new", "/threads", "/agent", "/model", "/quit"]) await hear(`  ${name}`);
  await say("> ", "/thread");
  await say("There is no command /thread; did you mean `threads`?", "");
  await say("> ", "/etc/hosts");
  await say("A path: /etc/hosts", "/quit");
  await hear("To continue: skein chat --thread t1");
  expect(await ended).toEqual([0, null]);
});

test("/threads lists the newest threads with their titles, and opens one by number with its history", async () => {
  const script = [
    { say: "Red it is.", call: [{ tool: "ask_user", args: { question: "Which colour?" } }] },
    { say: "Hello to you." },
    { say: "Thank you." },
  ];
  const { url } = await startServer({ script, agents: ASKING });
  await post(`${url}/threads`, { id: "old", title: "Colours\u001b[8m" });
  await runOn(url, "old", { input: "Choose a colour." });
  const { say, hear, ended } = chatting(url, { thread: "t1" });
  await say("> ", "Hello");
  await say("Hello to you.", "/threads");
  await hear("*  1  Hello");
  await say("   2  Colours\\u{1b}[8m  waiting for an answer", "/threads 3");
  await say("There is no number 3", "/threads 2");
  await hear("Thread old on");
  await hear("> Choose a colour.\nRed it is.\n→ ask_user");
  await say("? Which colour?", "blue");
  await say("Thank you.", "/new");
  await hear("Thread th_");
  await say("> ", "/quit");
  expect(await ended).toEqual([0, null]);
  const again = chatting(url, { thread: "t2" });
  await again.say("> ", "/threads 2");
  await again.hear("Thread t1 on");
});

test("/agent and /model list the options, and select one", async () => {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  provider.enqueue({ blocks: [sentence("First.")] });
  const env = { OPENAI_API_KEY: "sk-secret", OPENAI_BASE_URL: `${provider.url}/v1` };
  const { url } = await startServer({ agents: TWO_AGENTS, env, realModels: true });
  const { say, hear } = chatting(url);
  await hear("assistant answers with openai:gpt-5-mini.");
  await say("> ", "/agent");
  await hear("* assistant  openai:gpt-5-mini  Helps.\n  coder  openai:gpt-5\n");
  await say("> ", "/agent codr");
  await say("did you mean `coder`?", "/agent coder");
  await say("coder answers with openai:gpt-5.", "/model");
  await hear("* openai:gpt-5  default\n  openai:gpt-5-mini\n");
  await say("> ", "/model openai:gpt-5-mini");
  await say("coder answers with openai:gpt-5-mini.", "go");
  await hear("First.");
  expect(provider.requests()).toMatchObject([{ body: { model: "gpt-5-mini" } }]);
  expect(await newestRun(url)).toMatchObject({ agent: "coder" });
  await say("> ", "/model default");
  await say("coder answers with openai:gpt-5.", "/model nonsense");
  await hear("There is no model `nonsense`");
});

test("a thread with a run in progress shows earlier messages, and the run from its beginning", async () => {
  const { tool, open, entered } = gate();
  const script = [{ say: "Before." }, ...gated];
  const { url } = await startServer({ script, agents: WITH_GATE, tools: [tool] });
  await runOn(url, "t1", { input: "first" });
  await runOn(url, "t1", { input: "second", background: true });
  await entered;
  const { say, hear, ended } = chatting(url);
  await hear("> first\nBefore.\n\n> second\nWait.\n→ gate {}\n");
  open();
  await hear("✓ gate");
  await say("Through.", "/quit");
  expect(await ended).toEqual([0, null]);
});

test("a long thread is shown from its last messages on", async () => {
  const { url } = await startServer({ script: () => ({ say: "answer to {{user}}" }) });
  for (const number of Array.from({ length: 12 }, (_, index) => index))
    await runOn(url, "t1", { input: `q${number}` });
  const { hear } = chatting(url);
  await hear("(4 earlier messages)\n\n> q2\nanswer to q2\n");
  await hear("> q11\nanswer to q11\n");
});

test("a line typed during a run is sent after it; an empty line does nothing; Ctrl-D exits", async () => {
  const { tool, open, entered } = gate();
  const script = [...gated, { say: "You said {{user}}." }];
  const { url } = await startServer({ script, agents: WITH_GATE, tools: [tool] });
  const { say, hear, press, ended } = chatting(url, { colours: true });
  await say("> ", "go");
  await entered;
  press("and then\n");
  await hear("and then");
  open();
  await hear("> and then");
  await say("You said and then.", "");
  await hear("> ");
  await hear("> ");
  press("\x04");
  await hear("To continue: ");
  expect(await ended).toEqual([0, null]);
});
