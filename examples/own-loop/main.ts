// An agent that replaces the loop of model calls and tools with your own function. Events, hooks, limits, cancellation
// and the thread work as for any other agent.
//
// Run it:   npx node examples/own-loop/main.ts "the sea"
// Test it:  npm test -- test/examples/library.test.ts

import {
  type AgentLoop,
  createAgent,
  type Model,
  scriptedModel,
  textOf,
  userMessage,
} from "../../src/index.ts";

/** Writes a draft, asks for criticism, and revises the draft. This function decides the next step instead of a model. */
const draftAndRevise: AgentLoop = async function* (agent) {
  for (let input = yield* agent.receive(); input; input = yield* agent.receive()) {
    yield* agent.say(`A poem about ${textOf(input.content)}. First a draft.`);
    const draft = yield* agent.speak();
    // Only this call sees the request. The thread stores the answer.
    const critic = userMessage(`Criticise this in one sentence:\n${draft.message.content}`);
    yield* agent.speak((request) => ({ ...request, messages: [critic] }));
    yield* agent.append(userMessage("Now the final one."));
    yield* agent.speak();
    yield* agent.setState("drafts", 1);
  }
};

export const poet = (model: Model) =>
  createAgent({ name: "poet", model, loop: draftAndRevise, hook_settings: { todos: false } });

/** Replaces a real model. */
export const toyModel = () =>
  scriptedModel([
    { say: "Water, much of it." },
    { say: "It does not rhyme." },
    { say: "The sea, the sea: so wet, so free." },
  ]);

if (import.meta.main) {
  const handle = poet(toyModel()).run(process.argv[2] ?? "the sea");
  for await (const event of handle.events())
    if (event.event === "on_message")
      console.log(`${event.data.message.role}: ${textOf(event.data.message.content)}`);
}
