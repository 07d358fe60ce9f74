// Effects before and after a completion, which run once for each model call, within the loop. Counters need no reset,
// because each run creates its own hook.

import { abortRun, type Hook, type Message } from "../../src/index.ts";

const NEWEST = 4;
const LONGEST = 500;

/** Shortens old tool results for the model, and ends a run that makes no progress. */
export function effects(): Hook {
  let last: string | undefined;
  return {
    name: "effects",
    // Before the call: returns a view of the thread. The thread itself does not change.
    modifyRequest(request) {
      const old = request.messages.length - NEWEST;
      return { ...request, messages: request.messages.map((each, at) => (at < old ? trimmed(each) : each)) };
    },
    // After the call: the reply is complete, and its tools have not run yet.
    async *wrapModelCall(request, next) {
      const completion = yield* next(request);
      const { content, tool_calls = [] } = completion.message;
      const said = JSON.stringify([content, tool_calls.map(({ name, args }) => [name, args])]);
      if (said === last) throw abortRun("The model repeats itself.");
      last = said;
      return completion;
    },
  };
}

function trimmed(message: Message): Message {
  if (message.role !== "tool" || typeof message.content !== "string") return message;
  return { ...message, content: message.content.slice(0, LONGEST) };
}
