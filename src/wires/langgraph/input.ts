// The body with which clients start a run, and its messages.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import {
  assistantMessage,
  type Content,
  isBlank,
  type Message,
  Part,
  systemMessage,
  textOf,
  toolMessage,
} from "../../agent/core/message.ts";
import { newMessageId } from "../../agent/core/new-ids.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import { boundedList, boundedMap } from "../../lib/bounded-schemas.ts";
import { check, sentence } from "../../lib/check.ts";
import { clientToolsOf, DescribedTool } from "../client-tools.ts";
import { messageOf, readDataUrl } from "../messages.ts";

const Source = z.looseObject({
  type: z.string(),
  media_type: z.string().optional(),
  data: z.string().optional(),
});
const Block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  mime_type: z.string().optional(),
  mimeType: z.string().optional(),
  data: z.string().optional(),
  base64: z.string().optional(),
  url: z.string().optional(),
  source: Source.optional(),
  image_url: z.union([z.string(), z.looseObject({ url: z.string() })]).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
type Block = z.infer<typeof Block>;

const ROLES = {
  human: "user",
  user: "user",
  system: "system",
  developer: "system",
  ai: "assistant",
  assistant: "assistant",
  AIMessageChunk: "assistant",
  tool: "tool",
} as const;
const Type = z.enum(Object.keys(ROLES) as (keyof typeof ROLES)[]);

export const SentMessage = z.looseObject({
  type: Type.optional(),
  role: Type.optional(),
  id: z.string().max(256).nullish(),
  content: z.union([z.string(), boundedList(z.union([z.string(), Block]), 1000)]).nullish(),
  tool_calls: boundedList(
    z.looseObject({
      id: z.string().min(1).max(256).nullish(),
      name: z.string().min(1),
      args: z.record(z.string(), z.unknown()),
    }),
    128,
  ).nullish(),
  tool_call_id: z.string().optional(),
  name: z.string().nullish(),
});
export type SentMessage = z.infer<typeof SentMessage>;

/** The maximum number of keys of metadata and of files in a request. Skein stores fewer keys than that. */
export const MAX_SENT_KEYS = 1000;

/** LangChain also accepts a message as a pair of type and text. */
export const Pair = z.tuple([Type, z.string()]);

const Input = z.looseObject({
  messages: z
    .union([z.string(), SentMessage, boundedList(z.union([z.string(), Pair, SentMessage]), 10_000)])
    .optional(),
  files: boundedMap(z.string(), z.unknown(), MAX_SENT_KEYS).nullish(),
});

export const Checkpoint = z.looseObject({
  checkpoint_id: z.string().max(256).nullish(),
  checkpoint_ns: z.string().max(1024).nullish(),
});

const Configurable = z.looseObject({
  checkpoint_id: z.string().max(256).nullish(),
  model: z.string().max(256).nullish(),
  tools: z.array(DescribedTool).max(64).nullish(),
});

const Modes = z.union([z.string().max(64), z.array(z.string().max(64)).max(16)]);

/** Unknown fields are ignored. */
export const RunBody = z.looseObject({
  assistant_id: z.string().min(1).max(128).describe("Id of an assistant, or name of an agent."),
  input: Input.nullish(),
  command: z
    .looseObject({
      resume: z.unknown().optional(),
      goto: z.unknown().optional(),
      update: z.unknown().optional(),
    })
    .nullish(),
  checkpoint: Checkpoint.nullish(),
  checkpoint_id: z.string().max(256).nullish(),
  config: z.looseObject({ configurable: Configurable.nullish() }).nullish(),
  metadata: boundedMap(z.string(), z.unknown(), MAX_SENT_KEYS).nullish(),
  stream_mode: Modes.nullish(),
  stream_subgraphs: z.boolean().nullish(),
  multitask_strategy: z.enum(["reject", "interrupt", "rollback", "enqueue"]).nullish(),
  on_disconnect: z.enum(["continue", "cancel"]).nullish(),
  if_not_exists: z.enum(["create", "reject"]).nullish(),
  on_completion: z
    .enum(["delete", "keep", "complete", "continue"])
    .nullish()
    .describe("For a run without a thread: keep or delete its new thread. Default: `delete`."),
  interrupt_before: z.unknown().optional(),
  interrupt_after: z.unknown().optional(),
  webhook: z.unknown().optional(),
  after_seconds: z.unknown().optional(),
});
export type RunBody = z.infer<typeof RunBody>;

const refused = (message: string) => new AppError("invalid_request", message);

/** Throws `invalid_request` for unsupported options that would change the meaning of a run. */
export function refuseUnsupported(body: Partial<RunBody>): void {
  const { interrupt_before, interrupt_after, webhook, after_seconds, command } = body;
  if ([interrupt_before, interrupt_after].some((nodes) => (Array.isArray(nodes) ? nodes.length > 0 : nodes)))
    throw refused("Breakpoints are not supported. Configure permissions with `ask` for the agent instead.");
  if (webhook) throw refused("webhook: is not supported. Create a webhook with `PUT /webhooks/:id` instead.");
  if (after_seconds) throw refused("after_seconds: is not supported. Start the run when it is due.");
  const { goto } = command ?? {};
  if (goto && goto !== "__end__" && !(Array.isArray(goto) && goto.length === 0))
    throw refused("command.goto: only `__end__` is supported.");
}

/** Returns true if a run without a thread keeps its new thread. LangGraph's SDK also calls `keep` `continue`. */
export const isKept = ({ on_completion }: RunBody): boolean =>
  on_completion === "keep" || on_completion === "continue";

/** Returns the tools that the front end executes. */
export const clientTools = ({ config }: RunBody): ClientTool[] | undefined =>
  clientToolsOf(config?.configurable?.tools ?? [], (index, fault) =>
    refused(`config.configurable.tools[${index}]: ${fault}.`),
  );

/** Returns the checkpoint to start from, if the client sets one. */
export const checkpointIn = ({ checkpoint, checkpoint_id, config }: RunBody): string | undefined =>
  (checkpoint?.checkpoint_id || checkpoint_id || config?.configurable?.checkpoint_id) ?? undefined;

/** Returns the messages of the input, in order. */
export function sentMessages({ input }: Pick<RunBody, "input">): SentMessage[] {
  const messages = input?.messages ?? [];
  const list = Array.isArray(messages) ? messages : [messages];
  return list.map((each) => {
    if (typeof each === "string") return { type: "human", content: each };
    return Array.isArray(each) ? { type: each[0], content: each[1] } : each;
  });
}

/** Returns the role of a sent message in the thread. */
export function roleOf({ type, role }: SentMessage): Message["role"] {
  const named = type ?? role;
  if (named === undefined)
    throw refused("input.messages: each message needs a `type`: human, ai, system or tool.");
  return ROLES[named];
}

/** Converts a message for the thread. Keeps the client's id if it is valid. Throws `invalid_request`. */
export function messageIn(sent: SentMessage): Message {
  const content = contentOf(sent);
  const { id } = messageOf({ ...(sent.id ? { id: sent.id } : {}), content });
  switch (roleOf(sent)) {
    case "user":
      if (isBlank(content)) throw refused("input.messages: a user message is empty.");
      return messageOf({ id, content });
    case "system":
      return { ...systemMessage(content), id };
    case "assistant": {
      const calls = (sent.tool_calls ?? []).map((call) => ({
        id: call.id || newMessageId(),
        name: call.name,
        args: call.args,
      }));
      return { ...assistantMessage(textOf(content), ...calls), id };
    }
    case "tool": {
      if (!sent.tool_call_id) throw refused("input.messages: a tool message needs `tool_call_id`.");
      return { ...toolMessage({ id: sent.tool_call_id, name: sent.name || "tool" }, content), id };
    }
  }
}

function contentOf({ content }: SentMessage): Content {
  if (typeof content === "string") return content;
  const parts = (content ?? []).flatMap(partOf);
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" ? first.text : parts;
}

function partOf(block: string | Block): Part[] {
  if (typeof block === "string") return block === "" ? [] : [{ type: "text", text: block }];
  if (block.type === "text") return block.text ? [{ type: "text", text: block.text }] : [];
  if (block.type === "image_url" && block.image_url) {
    const { image_url } = block;
    return [
      parsed({ type: "image", ...readDataUrl(typeof image_url === "string" ? image_url : image_url.url) }),
    ];
  }
  if (!["image", "file", "audio", "document"].includes(block.type))
    throw refused(
      `input.messages: blocks of type \`${block.type}\` are not supported. Use text, image or file.`,
    );
  return [mediumOf(block)];
}

function mediumOf({ type, mime_type, mimeType, data, base64, url, source, metadata }: Block): Part {
  const bytes =
    url === undefined
      ? { media_type: mime_type ?? mimeType ?? source?.media_type, data: data ?? base64 ?? source?.data }
      : readDataUrl(url);
  const name = metadata?.name ?? metadata?.filename;
  return type === "image"
    ? parsed({ type, ...bytes })
    : parsed({ type: "file", ...bytes, ...(typeof name === "string" && name ? { name } : {}) });
}

function parsed(part: unknown): Part {
  const checked = check(Part, part);
  if ("value" in checked) return checked.value;
  throw refused(`input.messages: ${checked.faults.map((fault) => sentence(fault)).join(", ")}.`);
}
