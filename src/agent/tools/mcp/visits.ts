// Handles a server whose user must open an address in a browser before a call (MCP, revision 2025-11-25:
// `URLElicitationRequiredError`). Skein asks the user to open the address and repeats the call when the user
// confirms that they have finished there.

import { z } from "zod";
import type { Mask } from "../../../lib/mask.ts";
import { firstChars } from "../../../lib/text.ts";
import type { ToolCall } from "../../core/message.ts";
import { askFor, isVisitAsked, VISIT } from "../../core/open-interrupts.ts";
import type { Stream } from "../../core/stream.ts";
import { done, failed, interrupted, type Run, type ToolResult } from "../../core/tool.ts";

/** An address that a server wants its user to open. */
export interface Visit {
  readonly url: string;
  readonly message: string;
}

const NEEDS_VISIT = -32042;
const MAX_MESSAGE = 500;
const MAX_URL = 2000;

const Data = z.looseObject({
  elicitations: z
    .array(z.looseObject({ mode: z.string().optional(), url: z.url(), message: z.string().catch("") }))
    .min(1),
});

/** The first safe address in an error of the server, in its normal form. Undefined for any other error. */
export function visitIn(error: unknown): Visit | undefined {
  if (!(error instanceof Error && "code" in error && error.code === NEEDS_VISIT && "data" in error))
    return undefined;
  const { elicitations = [] } = Data.safeParse(error.data).data ?? {};
  for (const { url, message } of elicitations) {
    const address = safeAddress(url);
    if (address) return { url: address, message };
  }
  return undefined;
}

/**
 * An https address that is not too long and contains no user name or password before the host, where a person
 * would look for the host.
 */
function safeAddress(text: string): string | undefined {
  const { protocol, username, password, href } = new URL(text);
  const isSafe = protocol === "https:" && username === "" && password === "" && href.length <= MAX_URL;
  return isSafe ? href : undefined;
}

interface VisitContext {
  readonly server: string;
  readonly mask: Mask;
  readonly call: ToolCall;
  readonly run: Run;
}

/** The answer to the question that an earlier attempt asked. If undefined, the server can be called. */
export async function* beforeCall(context: VisitContext): Stream<ToolResult | undefined> {
  if (!isVisitAsked(context.call, context.run)) return undefined;
  return yield* ask(context, "The server asks you to open an address.");
}

/** Asks the user to go to an address. Returns the result of the call, which is repeated at most once. */
export async function* askToVisit(context: VisitContext, { url, message }: Visit): Stream<ToolResult> {
  const { server, mask, call, run } = context;
  if (isVisitAsked(call, run))
    return failed(`MCP server \`${server}\` still asks its user to open an address. The call had no effect.`);
  const why = message === "" ? "" : ` It says: "${firstChars(mask(message.toWellFormed()), MAX_MESSAGE)}".`;
  const prompt = `MCP server \`${server}\` asks you to open ${mask(url)} at ${new URL(url).host} in your browser.${why} Approve when you have finished there. Deny to continue without this call.`;
  return (yield* ask(context, prompt)) ?? interrupted();
}

async function* ask({ server, call, run }: VisitContext, prompt: string): Stream<ToolResult | undefined> {
  const answer = yield* askFor({ call, kind: "connect", topic: VISIT, prompt }, run);
  if (!answer) return interrupted();
  if (answer.decision === "approve") return undefined;
  const words = `The user did not open the address that \`${server}\` needs. Continue without this call.`;
  return { ...done(answer.message ? `${words} ${answer.message}` : words), denied: true };
}
