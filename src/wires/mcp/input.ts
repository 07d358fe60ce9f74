// The tools that MCP clients see. The agent is an argument, so a hundred agents do not fill the context of a client's
// model.

import { z } from "zod";
import { decisionIn } from "../../protocol/approval-words.ts";
import { Id } from "../../protocol/ids.ts";

const ThreadId = Id.describe("Id of the conversation, from the result of `run_agent`.");

export const RunAgent = z.object({
  agent: z.string().max(64).describe("Name of the agent."),
  message: z.string().min(1).max(1_000_000).describe("Message to the agent."),
  thread_id: Id.optional().describe("Id of the conversation to continue. Default: a new conversation."),
});
export const AnswerQuestion = z.object({
  thread_id: ThreadId,
  decision: z
    .preprocess((said) => decisionIn(said) ?? said, z.enum(["approve", "deny", "respond"]))
    .describe("`approve` or `deny` a call; `respond` to a question with `message`."),
  message: z.string().max(100_000).optional().describe("Answer to a question, or reason for a denial."),
  id: z.string().min(1).max(256).optional().describe("Id of the interrupt. Required if several are open."),
});
export const OneThread = z.object({ thread_id: ThreadId });
const Nothing = z.object({});

const Outcome = z.object({
  thread_id: z.string(),
  run_id: z.string(),
  status: z.string().describe("`success`, `interrupted` (waits for `answer`), `error` or `cancelled`."),
  text: z.string().describe("The agent's last message."),
  interrupts: z
    .array(
      z.object({
        id: z.string(),
        kind: z.string(),
        name: z.string(),
        args: z.record(z.string(), z.unknown()),
        prompt: z.string(),
        url: z.string().optional(),
        options: z.array(z.string()).optional(),
      }),
    )
    .optional()
    .describe("Questions of the agent."),
  error: z
    .object({ code: z.string(), message: z.string() })
    .optional()
    .describe("Reason why the run ended without an answer. The conversation can continue."),
});
const Agents = z.object({
  agents: z.array(z.object({ name: z.string(), description: z.string().optional() })),
});

const TOOLS = {
  run_agent: {
    description:
      "Sends a message to an agent of this server and returns its answer. The agent works on its own, with its own tools, and remembers the conversation. If the status is `interrupted`, it is waiting for an answer: use `answer`.",
    input: RunAgent,
    output: Outcome,
    annotations: { readOnlyHint: false, openWorldHint: true },
  },
  answer: {
    description: "Answers a question of an agent, and returns the agent's next message.",
    input: AnswerQuestion,
    output: Outcome,
    annotations: { readOnlyHint: false, openWorldHint: true },
  },
  list_agents: {
    description: "Lists the agents of this server with their descriptions.",
    input: Nothing,
    output: Agents,
    annotations: { readOnlyHint: true },
  },
  get_run: {
    description: "Returns the status of a conversation's newest run and the agent's last message.",
    input: OneThread,
    output: Outcome,
    annotations: { readOnlyHint: true },
  },
  cancel_run: {
    description: "Cancels the newest run of a conversation, even while it waits for an answer.",
    input: OneThread,
    output: Outcome,
    annotations: { readOnlyHint: false, idempotentHint: true },
  },
} as const;

export type ToolName = keyof typeof TOOLS;

export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[];

/** Returns the response to `tools/list`. */
export function toolList(agents: readonly string[]): object[] {
  return TOOL_NAMES.map((name) => {
    const { description, input, output, annotations } = TOOLS[name];
    const inputSchema = jsonSchema(input);
    return {
      name,
      description,
      annotations,
      outputSchema: jsonSchema(output),
      inputSchema: name === "run_agent" ? withAgents(inputSchema, agents) : inputSchema,
    };
  });
}

type ObjectSchema = Readonly<Record<string, unknown>> & {
  readonly properties: Readonly<Record<string, object>>;
};

const jsonSchema = (schema: z.ZodObject): ObjectSchema => ({
  ...z.toJSONSchema(schema, { io: "input" }),
  type: "object",
  properties: Object(z.toJSONSchema(schema, { io: "input" }).properties),
});

const withAgents = (schema: ObjectSchema, agents: readonly string[]) => ({
  ...schema,
  properties: { ...schema.properties, agent: { ...schema.properties.agent, enum: agents } },
});
