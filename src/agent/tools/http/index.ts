// Tools that tenants' servers execute. A call is a signed POST request. The response is the result, progress followed by the
// result, or an announcement of a later result.
//
// The model never sees an address or a header. The log never contains a request or a response.

import { type Mask, maskedValue } from "../../../lib/mask.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { PublicFetch } from "../../../lib/ssrf-safe-fetch/index.ts";
import { loadSchemaEngine } from "../../../lib/untrusted-schema/index.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import { isHandover, SERVER_FAILED, stoppedBecause } from "../../core/errors.ts";
import type { ToolCall } from "../../core/message.ts";
import { reportFailure } from "../../core/run.ts";
import { mapEvents, type Stream } from "../../core/stream.ts";
import { failed, type Run, type Tool, type ToolResult } from "../../core/tool.ts";
import { usableParameters } from "../parameters.ts";
import { answerOf, type EndpointFailure, type EndpointReply } from "./answer.ts";
import { type FinalAnswer, persist } from "./attempts.ts";
import { type Deferral, deferredResult } from "./deferral.ts";
import { annotationsOf, type HttpTool, maskOfTool } from "./registration.ts";
import { type CallRequest, callRequest } from "./request.ts";

export interface HttpToolServices {
  readonly fetch: PublicFetch;
  /** If undefined, a response that announces a later result fails the call. */
  readonly deferral?: Deferral;
  /** True to trust tools' annotations even if they make calls less strict. Default: false. */
  readonly trustAnnotations?: boolean;
}

/** Creates the tools of one tenant for its runs. */
export async function createHttpTools(
  tools: readonly HttpTool[],
  services: HttpToolServices,
): Promise<Tool[]> {
  if (tools.length === 0) return [];
  const { checker } = await loadSchemaEngine();
  return tools.map((tool) => {
    const usable = usableParameters(tool.parameters);
    // Another release may have accepted a schema that this one rejects.
    const fault = "fault" in usable ? usable.fault : undefined;
    const { parameters, schema } = "fault" in usable ? NO_PARAMETERS : usable;
    const { prepare, check } = checker(schema);
    return {
      name: tool.name,
      description: tool.description,
      parameters,
      ...omitUndefined({ fault }),
      annotations: annotationsOf(tool, services.trustAnnotations ?? false),
      prepare,
      parse(args) {
        const faults = check(args);
        return faults.length === 0 ? { args } : { faults };
      },
      execute: (_args, call, run) => masked(call, execute(tool, services, { call, run }), maskOfTool(tool)),
    };
  });
}

const NO_PARAMETERS = { parameters: { type: "object" }, schema: { type: "object" } };

/** Masks the progress (as one string) and the result, because endpoints may repeat data that they received. */
async function* masked(call: ToolCall, stream: Stream<ToolResult>, mask: Mask): Stream<ToolResult> {
  const shown = mask.inPieces();
  const progress = (output: string): StreamEvent[] =>
    output === "" ? [] : [{ event: "on_tool_progress", name: call.name, data: { call_id: call.id, output } }];
  const result = yield* mapEvents(stream, (event) =>
    event.event === "on_tool_progress" ? progress(shown.push(event.data.output)) : [event],
  );
  yield* progress(shown.end());
  return maskedValue(result, mask);
}

interface Execution {
  readonly call: ToolCall;
  readonly run: Run;
}

async function* execute(
  tool: HttpTool,
  services: HttpToolServices,
  execution: Execution,
): Stream<ToolResult> {
  const { call, run } = execution;
  const deferred = services.deferral && deferredResult(services.deferral, { tool, call, run });
  const known = await deferred?.known();
  if (known) return known;
  const address = await deferred?.open();
  let isSettled = false;
  try {
    const answer = yield* send(tool, callRequest(tool, { ...execution, address }), services.fetch, execution);
    isSettled = true;
    if (answer.kind === "result") {
      if (answer.failure) report(tool, answer.failure, execution);
      // A result that was delivered before this response replaces it. If the store is unavailable, this
      // response counts, and a delivered result becomes a message.
      return (await deferred?.close().catch(() => undefined)) ?? answer.result;
    }
    if (deferred) return await deferred.accept();
    report(tool, { code: "http_202", message: NO_LATER }, execution);
    return failed(NO_LATER);
  } catch (error) {
    if (isSettled || isHandover(run.signal)) throw error;
    isSettled = true;
    const delivered = await deferred?.close().catch(() => undefined);
    if (delivered) return delivered;
    throw error;
  } finally {
    if (!isSettled && !isHandover(run.signal)) await deferred?.close().catch(() => {});
  }
}

function report({ name }: HttpTool, failure: EndpointFailure, { call, run }: Execution): void {
  const { code, message, cause } = failure;
  const error = new Error(message, { cause });
  reportFailure(run, { what: "tool", error, code, tool: name, call_id: call.id });
}

const NO_LATER =
  "The tool's server announced a later result, which this server cannot receive. Its operator must set PUBLIC_URL.";

async function* send(
  tool: HttpTool,
  request: CallRequest,
  fetch: PublicFetch,
  { call, run }: Execution,
): Stream<FinalAnswer> {
  const { timeout_ms, idempotent, annotations } = tool;
  const isRepeatable = idempotent || annotations.read_only === true;
  const ends = performance.now() + timeout_ms;
  const deadline = AbortSignal.timeout(timeout_ms);
  const signal = AbortSignal.any([run.signal, deadline]);
  const attempt = async function* (): Stream<EndpointReply> {
    await using response = await fetch(tool.callback_url, { ...(await request.signed()), signal });
    return yield* answerOf(response, call, run.owner.tenant);
  };
  try {
    return yield* persist(attempt, { isRepeatable, signal, left: () => ends - performance.now() });
  } catch (error) {
    const { aborted } = run.signal;
    if (!(aborted || deadline.aborted) || isHandover(run.signal)) throw error;
    const doubt = isRepeatable ? "" : " The call's effect is unknown.";
    if (aborted) {
      const why = stoppedBecause(run.signal);
      return { kind: "result", result: failed(why === SERVER_FAILED ? why : why + doubt) };
    }
    const message = `${NO_ANSWER} within ${timeout_ms / 1000} s.`;
    return { kind: "result", result: failed(message + doubt), failure: { code: "timeout", message } };
  }
}

const NO_ANSWER = "The tool's server did not answer";
