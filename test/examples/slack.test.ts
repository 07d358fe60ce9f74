import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Press } from "../../examples/slack/payloads.ts";
import { answerOf, choiceOf, questionMessage } from "../../examples/slack/questions.ts";
import { createClient } from "../../src/client/client.ts";
import { deliver, fromSlack, type SentDelivery, slackMention } from "../support/deliveries.ts";
import { serving, skein } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { fakeSlack, type SlackRefuses } from "../support/slack.ts";

const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";
const TOKEN = "xoxb-of-the-app";
const PLUGIN = fileURLToPath(new URL("../../examples/slack/slack.ts", import.meta.url));
const ADA = "W021FGA1Z";

/** A server with the plugin, whose agent plays `script`, beside a Slack that refuses calls as `refuses` says. */
async function served(
  script: string,
  { refuses, quotas = {} }: { refuses?: SlackRefuses; quotas?: object } = {},
) {
  const slack = await fakeSlack(TOKEN, refuses);
  const dir = await temporaryFolder();
  const rules = [{ ask: "execute", message: "May it run?" }];
  const agent = {
    model: `scripted:${join(dir, "script.yaml")}`,
    backend: { type: "local" },
    tools: ["execute", "ask_user"],
    permissions: { rules },
  };
  const config = {
    plugins: [PLUGIN],
    auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] },
    backends: { allow_local: true },
    quotas,
  };
  await writeFile(join(dir, "script.yaml"), script);
  await writeFile(join(dir, "agents.yaml"), JSON.stringify({ agents: { helper: agent } }));
  await writeFile(join(dir, "server.yaml"), JSON.stringify(config));
  const { url } = await serving(
    skein(["serve"], {
      ...{ PORT: "0", STORE: "memory", DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml") },
      ...{ CONFIG_FILE: join(dir, "server.yaml"), SLACK_SIGNING_SECRET: SECRET, SLACK_BOT_TOKEN: TOKEN },
      ...{ SLACK_API_URL: slack.url, SLACK_TENANT: "acme", SLACK_PACE_MS: "0" },
    }),
  );
  const at = async (path: string, sent: SentDelivery) => {
    const response = await deliver(`${url}/plugins/slack/${path}`, sent);
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };
  return {
    slack,
    sent: (payload: object, time?: number) => at("events", fromSlack(SECRET, payload, time)),
    pressed: (payload: object) =>
      at("presses", fromSlack(SECRET, `payload=${encodeURIComponent(JSON.stringify(payload))}`)),
    forged: () => at("events", fromSlack("of another app", slackMention())),
    person: (user: string) =>
      createClient({
        baseUrl: url,
        headers: {
          "x-skein-tenant": "acme",
          "x-skein-user": `slack:T061EG9R6:${user}`,
          "x-skein-scopes": "read",
        },
      }),
  };
}

const THREAD = "slack_T061EG9R6_C0LAN2Q65_1515449522_000016";
const whole = { channel: "C0LAN2Q65", thread_ts: "1515449522.000016", isStreaming: false };

test("Slack's address verification is answered, and no request that Slack has not just signed", async () => {
  const { sent, forged } = await served("- { say: ok }");
  const verification = {
    token: "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    challenge: "3eZbrw1aB",
    type: "url_verification",
  };
  expect(await sent(verification)).toEqual({ status: 200, body: { challenge: "3eZbrw1aB" } });
  expect((await forged()).status).toBe(401);
  expect((await sent(verification, Date.now() - 6 * 60_000)).status).toBe(401);
});

test("a mention is answered in its thread once, and its author has the conversation as a thread", async () => {
  const { slack, sent, person } = await served("- { say: 'A river, <!channel>.' }");
  expect((await sent(slackMention())).status).toBe(200);
  expect((await sent(slackMention())).status).toBe(200);
  await expect.poll(slack.messages).toMatchObject([{ ...whole, text: "A river, &lt;!channel>." }]);
  const [start] = slack.calls("chat.startStream");
  expect(start).toMatchObject({ recipient_user_id: ADA, recipient_team_id: "T061EG9R6" });

  const more = slackMention("<@U0LAN0Z89> Really?", "Ev2");
  await sent({ ...more, event: { ...more.event, ts: "1515449599.000001", thread_ts: whole.thread_ts } });
  await expect.poll(slack.messages).toMatchObject([{}, { ...whole, text: "A river, &lt;!channel>." }]);
  const { items } = await person(ADA).threads.messages(THREAD);
  expect(items.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual([
    "is it everything a river should be?",
    "Really?",
  ]);
  await expect(person("U0STRANGER").threads.get(THREAD)).rejects.toMatchObject({ code: "not_found" });
});

test("messages from bots, the app itself, channels and other workspaces start nothing", async () => {
  const { slack, sent } = await served("- { say: ok }");
  const changed = (event: object, rest = {}) => {
    const mention = slackMention();
    return sent({ ...mention, ...rest, event: { ...mention.event, ...event } });
  };
  const authorizations = [{ enterprise_id: null, team_id: "T061EG9R6", user_id: ADA, is_bot: true }];
  const answers = [
    await changed({ bot_id: "B1" }),
    await changed({}, { authorizations }),
    await changed({ type: "message", channel_type: "channel" }),
    await changed({ type: "message", channel_type: "im", subtype: "message_changed" }),
    await changed({ user_team: "T0OTHER" }),
    await changed({ text: "<@U0LAN0Z89> " }),
    await changed({ type: "reaction_added" }),
  ];
  expect(answers.map(({ status, body }) => [status, Object.keys(body ?? {})])).toEqual(
    answers.map(() => [200, ["ignored"]]),
  );
  await sent(slackMention());
  await expect.poll(slack.messages).toMatchObject([{ ...whole, text: "ok" }]);
});

const ASKS = `
- { say: I look., call: [{ tool: execute, args: { command: "echo hi" } }] }
- { say: Done. }
`;

/** A press of the message's button with this label, as in https://docs.slack.dev/reference/interaction-payloads/block_actions-payload. */
function pressOf({ ts, blocks }: { ts: string; blocks?: unknown }, label: string, user: string) {
  const [, { elements = [] } = {}] = blocks as {
    elements?: { action_id: string; text: { text: string } }[];
  }[];
  return {
    type: "block_actions",
    user: { id: user, username: "ada", name: "ada", team_id: "T061EG9R6" },
    api_app_id: "A0MDYCDME",
    token: "ZZZZZZWSxiZZZ2yIvs3peJ",
    container: { type: "message", message_ts: ts, channel_id: whole.channel, is_ephemeral: false },
    trigger_id: "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",
    team: { id: "T061EG9R6", domain: "acme" },
    channel: { id: whole.channel, name: "general" },
    message: { type: "message", bot_id: "B1", text: "May it run?", ts, thread_ts: whole.thread_ts, blocks },
    response_url: "https://hooks.slack.com/actions/T061EG9R6/1/x",
    actions: elements
      .filter(({ text }) => text.text === label)
      .map((element) => ({ ...element, block_id: "b", action_ts: "1515449600.000001" })),
  };
}

test("an approval has buttons that only the person who asked can press, once", async () => {
  const { slack, sent, pressed } = await served(ASKS);
  await sent(slackMention());
  await expect.poll(slack.messages).toMatchObject([{ ...whole, text: "I look." }, { text: "May it run?" }]);
  const [, question] = slack.messages();
  expect(JSON.stringify(question?.blocks)).toContain("echo hi");
  const press = (label: string, user = ADA) => pressed(pressOf(question ?? { ts: "" }, label, user));

  expect((await press("Approve", "U0STRANGER")).status).toBe(200);
  await expect.poll(() => slack.calls("chat.postEphemeral")).toMatchObject([{ user: "U0STRANGER" }]);
  expect(slack.messages()).toHaveLength(2);

  expect(await press("Approve")).toEqual({ status: 200, body: undefined });
  await expect.poll(slack.messages).toMatchObject([{}, {}, { ...whole, text: "Done." }]);
  const answered = JSON.stringify(slack.messages()[1]?.blocks);
  expect(answered).toContain(`Approved by <@${ADA}>`);
  expect(answered).not.toContain("button");

  await press("Deny");
  await expect.poll(() => JSON.stringify(slack.messages()[1]?.blocks)).toContain("No longer open.");
});

test("a request to connect an account has the buttons of an approval", () => {
  const asked = {
    kind: "connect" as const,
    ...{ id: "i1", call_id: "c1", run_id: "r1", name: "mcp__notes__find", args: {} },
    ...{ prompt: "Connect your account at `notes`, then approve.", created_at: "2026-01-01T00:00:00.000Z" },
  };
  const message = questionMessage(asked, { thread_id: "t1", user: ADA });
  expect(JSON.stringify(message)).not.toContain("Answer in this thread");
  const answers = ["Approve", "Deny"].map((label) => {
    const shown = { ts: "1700000000.000000", blocks: message?.blocks };
    const choice = choiceOf(Press.parse(pressOf(shown, label, ADA)));
    return choice && answerOf(choice, asked);
  });
  expect(answers).toEqual([
    { id: "i1", decision: "approve" },
    { id: "i1", decision: "deny" },
  ]);
});

test("a question is answered by the next message in its thread", async () => {
  const { slack, sent } = await served(`
- { call: [{ tool: ask_user, args: { question: Which river? } }] }
- { say: The Isar. }
`);
  await sent(slackMention());
  await expect.poll(slack.messages).toMatchObject([{ text: "Which river?" }]);
  const more = slackMention("<@U0LAN0Z89> Isar", "Ev2");
  await sent({ ...more, event: { ...more.event, ts: "1515449599.000001", thread_ts: whole.thread_ts } });
  await expect.poll(slack.messages).toMatchObject([{}, { ...whole, text: "The Isar." }]);
});

test("if Slack refuses to stream, the message is edited", async () => {
  const refuses: SlackRefuses = ({ method }) =>
    method.endsWith("Stream") ? { error: "channel_type_not_supported" } : undefined;
  const { slack, sent } = await served("- { say: One two three four., delay_ms: 5 }", { refuses });
  await sent(slackMention());
  await expect.poll(slack.messages).toMatchObject([{ ...whole, text: "One two three four." }]);
});

test("a stream that Slack has ended continues in another message", async () => {
  const refuses: SlackRefuses = ({ method, args }) =>
    method === "chat.appendStream" && args.ts === "1700000000.000000"
      ? { error: "message_not_in_streaming_state" }
      : undefined;
  const { slack, sent } = await served("- { say: One two three four., delay_ms: 5 }", { refuses });
  await sent(slackMention());
  const text = () =>
    slack
      .messages()
      .map((message) => message.text.trim())
      .join(" ");
  await expect.poll(text).toBe("One two three four.");
});

test("a call above Slack's rate limit is repeated", async () => {
  let left = 2;
  const refuses: SlackRefuses = ({ method }) =>
    method === "chat.startStream" && left-- > 0 ? { error: "ratelimited", retryAfter: "0" } : undefined;
  const { slack, sent } = await served("- { say: ok }", { refuses });
  await sent(slackMention());
  await expect.poll(slack.messages).toMatchObject([{ ...whole, text: "ok" }]);
  expect(slack.calls("chat.startStream")).toHaveLength(3);
});

test("a long answer becomes several messages, without losing characters", async () => {
  const { slack, sent } = await served(`- { say: "${"🌊 waves ".repeat(2_000)}end" }`);
  await sent(slackMention());
  const joined = () => slack.messages().map(({ text }) => text);
  await expect.poll(() => joined().join("").replaceAll(/\s/g, "")).toBe(`${"🌊waves".repeat(2_000)}end`);
  expect(Math.max(...joined().map(({ length }) => length))).toBeLessThan(12_000);
});

test("a person whose quota is used up gets a message about it", async () => {
  const { slack, sent } = await served("- { say: ok }", { quotas: { user: { requests_per_minute: 1 } } });
  expect((await sent(slackMention())).status).toBe(200);
  await expect
    .poll(() => slack.calls("chat.postEphemeral"))
    .toMatchObject([{ user: ADA, text: expect.stringMatching(/requests/) }]);
});
