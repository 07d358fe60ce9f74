// A chat around AG-UI's `HttpAgent`. Its address says which server it talks to (`?server=`); the thread is in its hash, so that
// a reload finds it.

import { type AssistantMessage, HttpAgent, type Message } from "@ag-ui/client";
import { useEffect, useReducer, useState } from "react";
import { createRoot } from "react-dom/client";

const api = `${new URLSearchParams(location.search).get("server")}/ag-ui/agent/assistant`;
const known = location.hash.slice(1);
const agent = new HttpAgent({ url: `${api}/run`, threadId: known || crypto.randomUUID() });

type Run = Parameters<typeof agent.runAgent>[0];

/** Shows the thread as it is, and the run in progress to its end. */
async function connect() {
  if (!known) return;
  agent.url = `${api}/connect`;
  await agent.runAgent();
  agent.url = `${api}/run`;
}

const connected = connect();

function Chat() {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const [isRunning, setRunning] = useState(true);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const onRunErrorEvent = ({ event }: { event: { message: string } }) => setFailure(event.message);
    return agent.subscribe({ onMessagesChanged: render, onRunErrorEvent }).unsubscribe;
  }, []);
  useEffect(() => {
    void connected.finally(() => setRunning(false));
  }, []);
  const during = async (work: () => Promise<unknown>) => {
    setRunning(true);
    setFailure("");
    await work().catch((error: unknown) => setFailure(String(error)));
    setRunning(false);
  };
  const run = (more: Run = {}) =>
    during(() => agent.runAgent({ forwardedProps: { on_disconnect: "continue" }, ...more }));
  const say = (form: FormData) => {
    location.hash = agent.threadId;
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: String(form.get("text")) });
    void run();
  };
  const stop = async () => {
    agent.abortRun();
    await fetch(`${api}/stop/${agent.threadId}`, { method: "POST" });
  };
  const asked = isRunning ? [] : agent.pendingInterrupts;
  const answer = (payload: object) =>
    run({ resume: asked.map(({ id }) => ({ interruptId: id, status: "resolved", payload })) });
  return (
    <main>
      {agent.messages.map((message) => (
        <Shown key={message.id} message={message} all={agent.messages} />
      ))}
      {asked.length > 0 && (
        <>
          <button type="button" onClick={() => answer({ approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => answer({ approved: false, reason: "Not on my machine." })}>
            Deny
          </button>
        </>
      )}
      <output>{isRunning ? "streaming" : "ready"}</output>
      {failure && <p role="alert">{failure}</p>}
      <form action={say}>
        <input name="text" aria-label="Message" />
        <button type="submit">Send</button>
        <button type="button" onClick={stop}>
          Stop
        </button>
      </form>
    </main>
  );
}

function Shown({ message, all }: { readonly message: Message; readonly all: readonly Message[] }) {
  if (message.role !== "user" && message.role !== "assistant") return null;
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return (
    <article aria-label={message.role}>
      <p>{String(message.content ?? "")}</p>
      {calls.map((call) => (
        <Call key={call.id} call={call} all={all} />
      ))}
    </article>
  );
}

interface CallProps {
  readonly call: NonNullable<AssistantMessage["toolCalls"]>[number];
  readonly all: readonly Message[];
}

function Call({ call, all }: CallProps) {
  const result = all.find((message) => message.role === "tool" && message.toolCallId === call.id);
  return (
    <section aria-label={call.function.name}>
      <h4>
        {call.function.name}: {result ? "done" : "called"}
      </h4>
      <pre>{call.function.arguments}</pre>
      {result && <pre>{String(result.content)}</pre>}
    </section>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);
