// The body of a model request, as far as tests look into it. The vendors' strict schemas check all of it.

import { z } from "zod";
import type { RecordedRequest } from "./server.ts";

const Block = z.looseObject({
  type: z.string(),
  input: z.unknown().optional(),
  tool_use_id: z.string().optional(),
  // The result of a failed search is none.
  content: z
    .array(z.looseObject({ text: z.string().optional() }))
    .optional()
    .catch(undefined),
  cache_control: z.unknown().optional(),
});
const Call = z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) });
const Message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(Block)]).nullish(),
  tool_calls: z.array(Call).optional(),
  tool_call_id: z.string().optional(),
});
const Schema = z.record(z.string(), z.unknown());
const Marked = z.looseObject({ cache_control: z.unknown().optional() });

const SentBody = z.looseObject({
  model: z.string().optional(),
  messages: z.array(Message),
  system: z.union([z.string(), z.array(Marked)]).optional(),
  tools: z
    .array(
      Marked.extend({
        name: z.string().optional(),
        function: z.looseObject({ name: z.string() }).optional(),
      }),
    )
    .optional(),
  tool_choice: z.unknown().optional(),
  max_tokens: z.number().optional(),
  max_completion_tokens: z.number().optional(),
  temperature: z.number().optional(),
  thinking: z.looseObject({ budget_tokens: z.number().optional() }).optional(),
  reasoning_effort: z.string().optional(),
  response_format: z.looseObject({ json_schema: z.looseObject({ schema: Schema }) }).optional(),
  output_config: z.looseObject({ format: z.looseObject({ schema: Schema }).optional() }).optional(),
  extra_body: z.unknown().optional(),
});
export type SentBody = z.infer<typeof SentBody>;
export type SentMessage = SentBody["messages"][number];

/** Throws when the request has no such body, or there is no request. */
export function sentBody(request: Pick<RecordedRequest, "body"> | undefined): SentBody {
  SentBody.parse(request?.body);
  // Just checked; as it came, with its members in their order.
  return request?.body as SentBody;
}

/** The parts of a message that is not one text. */
export const blocksOf = ({ content }: Pick<SentMessage, "content">) =>
  Array.isArray(content) ? content : [];
