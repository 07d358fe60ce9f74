// A chat around `useStream` of the LangGraph SDK. Its address says which server
// it talks to (`?server=`); the thread is in its hash, so that a reload finds it.

import type { AIMessage, Message, ToolMessage } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

interface State extends Record<string, unknown> {
  messages: Message[];
  todos?: { id: string; content: string; status: string }[];
}

interface Approval {
  action_requests: { name: string; args: unknown }[];
}

const apiUrl = `${new URLSearchParams(location.search).get("server")}/langgraph`;

type ToolCall = NonNullable<AIMessage["tool_calls"]>[number];

const resultOf = (messages: readonly Message[], { id }: ToolCall) =>
  messages.find((message) => message.type === "tool" && message.tool_call_id === id) as
    | ToolMessage
    | undefined;

function Chat() {
  const [threadId, setThreadId] = useState(location.hash.slice(1) || null);
  const stream = useStream<State, { InterruptType: Approval }>({
    apiUrl,
    assistantId: "assistant",
    threadId,
    onThreadId: (id) => {
      location.hash = id;
      setThreadId(id);
    },
    reconnectOnMount: true,
    fetchStateHistory: true,
  });
  const say = (form: FormData) => {
    const said: Message = { id: crypto.randomUUID(), type: "human", content: String(form.get("text")) };
    return stream.submit(
      { messages: [said] },
      { optimisticValues: ({ messages = [] }) => ({ messages: [...messages, said] }) },
    );
  };
  /** Another answer in place of the last one. */
  const again = () => {
    const message = stream.messages.at(-1);
    const before = message && stream.getMessagesMetadata(message)?.firstSeenState?.parent_checkpoint;
    return stream.submit(undefined, { checkpoint: before ?? null });
  };
  const asked = stream.interrupt?.value?.action_requests ?? [];
  const decide = (decision: object) =>
    stream.submit(null, { command: { resume: { decisions: asked.map(() => decision) } } });
  return (
    <main>
      {stream.messages.map((message) => {
        if (message.type !== "human" && message.type !== "ai") return null;
        const role = message.type === "human" ? "user" : "assistant";
        const calls = message.type === "ai" ? (message.tool_calls ?? []) : [];
        return (
          <article key={message.id} aria-label={role}>
            <p>{String(message.content)}</p>
            {calls.map((call) => (
              <Call key={call.id} call={call} result={resultOf(stream.messages, call)} />
            ))}
          </article>
        );
      })}
      <ul>
        {stream.values.todos?.map(({ id, content, status }) => (
          <li key={id}>
            {content}: {status}
          </li>
        ))}
      </ul>
      {asked.length > 0 && (
        <>
          <button type="button" onClick={() => decide({ type: "approve" })}>
            Approve
          </button>
          <button type="button" onClick={() => decide({ type: "reject", message: "Not on my machine." })}>
            Deny
          </button>
        </>
      )}
      <output>{stream.isLoading ? "streaming" : "ready"}</output>
      {stream.error !== undefined && <p role="alert">{String(stream.error)}</p>}
      <form action={say}>
        <input name="text" aria-label="Message" />
        <button type="submit">Send</button>
        <button type="button" onClick={() => stream.stop()}>
          Stop
        </button>
        <button type="button" onClick={again}>
          Again
        </button>
      </form>
    </main>
  );
}

function Call({ call, result }: { readonly call: ToolCall; readonly result: ToolMessage | undefined }) {
  return (
    <section aria-label={call.name}>
      <h4>
        {call.name}: {result?.status ?? "called"}
      </h4>
      <pre>{JSON.stringify(call.args)}</pre>
      {result && <pre>{String(result.content)}</pre>}
    </section>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
);
