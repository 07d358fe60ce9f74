// An agent whose commands reach some hosts only, on a backend that records what it was asked for.

import { expect, test } from "vitest";
import type { Backend, ExecOptions, ExecResult } from "../../../../src/agent/core/backend.ts";
import { toolMessages } from "../../../../src/agent/core/message.ts";
import { filesystem } from "../../../../src/agent/hooks/filesystem/index.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import type { Answer } from "../../../../src/protocol/interrupt.ts";
import { type Play, type Played, play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { made } from "../made.ts";

const ALLOW = ["api.example.com"];
const request = (host: string): Turn => ({
  call: [{ tool: "request_host", args: { host, reason: "to install a package" } }],
});
const runCommand: Turn = { call: [{ tool: "execute", args: { command: "true" } }] };

function agentWith(network: object, result: Partial<ExecResult> = {}, more: object = {}) {
  const commands: ExecOptions[] = [];
  const backend = {
    type: "docker",
    workdir: "/workspace",
    async *exec(_: string, options: ExecOptions) {
      commands.push(options);
      return { output: "", omitted: 0, exitCode: 0, ...result };
    },
  } as unknown as Backend;
  const run = (script: NonNullable<Play["script"]>, its: Partial<Play> = {}) =>
    play({
      ...{ script, backend, ...its },
      hooks: [made(filesystem, { backend, agent: { backend: { type: "docker", network, ...more } } })],
    });
  return { run, commands };
}

/** Resumes an interrupted run. */
const answered = (
  { run }: ReturnType<typeof agentWith>,
  { messages, state, outcome }: Played,
  answer: Omit<Answer, "id">,
  script: readonly Turn[],
) => {
  const [call] = outcome.status === "interrupted" ? outcome.calls : [];
  const answers = [{ id: `approval_${call?.id}`, ...answer }];
  return run(script, { say: null, input: { messages, state, answers } });
};

test("later commands of the same thread, and of no other, can reach a host that the user allows", async () => {
  const agent = agentWith({ allow: ALLOW, ask: true });
  const asked = await agent.run([request("Files.Example.com")]);
  expect(asked.outcome.status).toBe("interrupted");
  expect(dataOf(asked.events, "on_interrupt")).toMatchObject([
    {
      kind: "approval",
      options: ["approve", "deny"],
      prompt:
        "May commands of this conversation reach the host `files.example.com`? The agent's reason: to install a package",
    },
  ]);
  const { state, messages } = await answered(agent, asked, { decision: "approve" }, [
    runCommand,
    { say: "ok" },
  ]);
  expect(toolMessages(messages)[0]?.content).toBe(
    "Commands of this conversation may now reach files.example.com.",
  );
  expect(agent.commands.map(({ hosts }) => hosts)).toEqual([["files.example.com"]]);
  await agent.run([request("files.example.com"), runCommand, { say: "ok" }], { input: { state } });
  expect(agent.commands[1]?.hosts).toEqual(["files.example.com"]);
  await agent.run([runCommand, { say: "ok" }]);
  expect(agent.commands[2]?.hosts).toEqual([]);
});

test("a host that the user denies cannot be reached, and the model sees the denial", async () => {
  const agent = agentWith({ allow: ALLOW, ask: true });
  const asked = await agent.run([request("files.example.com")]);
  const { messages } = await answered(agent, asked, { decision: "deny" }, [runCommand, { say: "ok" }]);
  expect(toolMessages(messages)[0]?.error).toBe(
    "The user does not allow files.example.com. Do not try to reach it in another way.",
  );
  expect(agent.commands.map(({ hosts }) => hosts)).toEqual([[]]);
});

test("if the operator does not let agents ask, a thread's hosts have no effect", async () => {
  const agent = agentWith({ allow: ALLOW });
  const state = new Map([["hosts", { "files.example.com": "2026-01-01" }]]);
  const { messages } = await agent.run([request("x.example.com"), runCommand, { say: "ok" }], {
    input: { state },
  });
  expect(toolMessages(messages)[0]?.error).toContain("request_host");
  expect(agent.commands[0]).not.toHaveProperty("hosts");
});

test("accepts only host names, and at most 32 in a thread", async () => {
  const agent = agentWith({ allow: ALLOW, ask: true });
  for (const host of [
    "10.0.0.1",
    "*.example.com",
    "*",
    "https://a.example",
    "localhost",
    "a.example:99999999",
  ]) {
    const { outcome } = await agent.run([request(host), { say: "ok" }]);
    expect(outcome.status).toBe("success");
  }
  const hosts = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`h${at}.example`, ""]));
  const full = await agent.run([request("one.more.example"), { say: "ok" }], {
    input: { state: new Map([["hosts", hosts]]) },
  });
  expect(toolMessages(full.messages)[0]?.error).toBe("A conversation can have at most 32 additional hosts.");
  const forged = new Map([["hosts", { "*": "", "*.example": "", "10.0.0.1": "" }]]);
  await agent.run([runCommand, { say: "ok" }], { input: { state: forged } });
  expect(agent.commands.at(-1)?.hosts).toEqual([]);
});

test("the result for the model lists refused connections, and there is a warning", async () => {
  const refused = [
    { target: "evil.example:443", reason: "host" },
    { target: "api.example.com:443", reason: "name" },
    { target: "api.example.com:80", reason: "placeholder" },
    { target: "api.example.com:443", reason: "connection" },
  ] as const;
  const { run } = agentWith({ allow: ALLOW }, { refused, exitCode: 6 });
  const { events, messages } = await run([runCommand, { say: "ok" }]);
  const told = [
    "evil.example:443 is not among the hosts that commands may reach.",
    "api.example.com:443 was allowed, but the connection was not TLS or HTTP for it.",
    "api.example.com:80 may not receive the secret whose placeholder the request contained.",
    "api.example.com:443 did not receive the request, because the connection of its secret is missing or has ended.",
  ];
  expect(dataOf(events, "warning")).toEqual(told.map((message) => ({ code: "network_refused", message })));
  expect(toolMessages(messages)[0]?.content).toBe(`[network: ${told.join(" ")}]\n[exit_code: 6]`);
});

test("the model sees the variables for secrets and the hosts that receive them", async () => {
  const env = { API_TOKEN: { vault: "example", hosts: ["api.example.com"] } };
  const described: string[] = [];
  await agentWith({ allow: ALLOW }, {}, { env }).run(({ tools }) => {
    described.push(...tools.flatMap((tool) => (tool.name === "execute" ? tool.description : [])));
    return { say: "ok" };
  });
  expect(described).toEqual([
    expect.stringContaining(
      "$API_TOKEN contains a placeholder. Put it into a header of an HTTPS request to api.example.com,",
    ),
  ]);
});
