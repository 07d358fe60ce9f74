// The tools that MCP clients see: agents are an argument, so that a hundred of them do not fill the context of a client's model.

import { z } from "zod";
import { decisionIn } from "../../protocol/approval-words.ts";
import { Id } from "../../protocol/ids.ts";

const ThreadId = Id.describe("The conversation, as `run_agent` returned it.");

export const RunAgent = z.object({
  agent: z.string().max(64).describe("Name of the agent."),
  message: z.string().min(1).max(1_000_000).describe("What to say to the agent."),
  thread_id: Id.optional().describe("Continues this conversation; without it, a new one begins."),
});
export const AnswerQuestion = z.object({
  thread_id: ThreadId,
  decision: z
    .preprocess((said) => decisionIn(said) ?? said, z.enum(["approve", "deny", "respond"]))
    .describe("`approve` or `deny` a call; `respond` to a question with `message`."),
  message: z.string().max(100_000).optional().describe("The answer to a question, or why a call is denied."),
  id: z.string().min(1).max(256).optional().describe("Which interrupt; needed when several are open."),
});
export const OneThread = z.object({ thread_id: ThreadId });
const Nothing = z.object({});

const Outcome = z.object({
  thread_id: z.string(),
  run_id: z.string(),
  status: z.string().describe("`success`, `interrupted` when it waits for `answer`, `error` or `cancelled`."),
  text: z.string().describe("What the agent said last."),
  interrupts: z
    .array(
      z.object({
        id: z.string(),
        kind: z.string(),
        name: z.string(),
        args: z.record(z.string(), z.unknown()),
        prompt: z.string(),
        options: z.array(z.string()).optional(),
      }),
    )
    .optional()
    .describe("What the agent asks."),
  error: z
    .object({ code: z.string(), message: z.string() })
    .optional()
    .describe("Why the run ended without an answer. The conversation can continue."),
});
const Agents = z.object({
  agents: z.array(z.object({ name: z.string(), description: z.string().optional() })),
});

const TOOLS = {
  run_agent: {
    description:
      "Sends a message to an agent of this server and returns its answer. The agent works by itself, with tools of its own, and remembers the conversation. With status `interrupted` it waits: use `answer`.",
    input: RunAgent,
    output: Outcome,
    annotations: { readOnlyHint: false, openWorldHint: true },
  },
  answer: {
    description: "Answers what an agent asks, and returns what it says then.",
    input: AnswerQuestion,
    output: Outcome,
    annotations: { readOnlyHint: false, openWorldHint: true },
  },
  list_agents: {
    description: "The agents of this server, and what each is for.",
    input: Nothing,
    output: Agents,
    annotations: { readOnlyHint: true },
  },
  get_run: {
    description: "What the newest run of a conversation is at, and what the agent said last.",
    input: OneThread,
    output: Outcome,
    annotations: { readOnlyHint: true },
  },
  cancel_run: {
    description: "Ends the newest run of a conversation, also one that waits for an answer.",
    input: OneThread,
    output: Outcome,
    annotations: { readOnlyHint: false, idempotentHint: true },
  },
} as const;

export type ToolName = keyof typeof TOOLS;

export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[];

/** The answer to `tools/list`. */
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
