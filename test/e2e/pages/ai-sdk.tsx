// A chat around `useChat`, as docs/reference/wires/ai-sdk.md tells to write one. Its address says which server it talks to
// (`?server=`) and with which key (`?key=`); the chat is in its hash, so that a reload finds it.

import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

const settings = new URLSearchParams(location.search);
const api = `${settings.get("server")}/ai-sdk/assistant/chat`;
const key = settings.get("key");
const headers: Record<string, string> = key ? { Authorization: `Bearer ${key}` } : {};
const known = location.hash.slice(1);
const id = known || crypto.randomUUID();

async function history(): Promise<UIMessage[]> {
  const response = await fetch(`${api}/${id}/messages`, { headers });
  return (await response.json()) as UIMessage[];
}

function Chat({ before }: { before: UIMessage[] }) {
  const { messages, status, error, sendMessage, addToolApprovalResponse, stop } = useChat({
    id,
    messages: before,
    resume: known !== "",
    transport: new DefaultChatTransport({ api, headers }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const send = (form: FormData) => {
    location.hash = id;
    return sendMessage({ text: String(form.get("text")) });
  };
  const cancel = async () => {
    await stop();
    await fetch(`${api}/${id}/stop`, { method: "POST", headers });
  };
  const decide = (call: DynamicToolUIPart, approved: boolean) =>
    void addToolApprovalResponse({
      id: call.approval?.id ?? "",
      approved,
      ...(approved ? {} : { reason: "Not on my machine." }),
    });
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} aria-label={message.role}>
          {message.parts.map((part, index) => {
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added at the end
            if (part.type === "text") return <p key={index}>{part.text}</p>;
            if (part.type !== "dynamic-tool") return null;
            return <Call key={part.toolCallId} call={part} decide={decide} />;
          })}
        </article>
      ))}
      <output>{status}</output>
      {error && <p role="alert">{error.message}</p>}
      <form action={send}>
        <input name="text" aria-label="Message" />
        <button type="submit">Send</button>
        <button type="button" onClick={cancel}>
          Stop
        </button>
      </form>
    </main>
  );
}

interface CallProps {
  readonly call: DynamicToolUIPart;
  readonly decide: (call: DynamicToolUIPart, approved: boolean) => void;
}

function Call({ call, decide }: CallProps) {
  return (
    <section aria-label={call.toolName}>
      <h4>
        {call.toolName}: {call.state}
      </h4>
      <pre>{JSON.stringify(call.input)}</pre>
      {call.state === "output-available" && <pre>{String(call.output)}</pre>}
      {call.state === "approval-requested" && (
        <>
          <button type="button" onClick={() => decide(call, true)}>
            Approve
          </button>
          <button type="button" onClick={() => decide(call, false)}>
            Deny
          </button>
        </>
      )}
    </section>
  );
}

const before = known ? await history() : [];
createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode>
    <Chat before={before} />
  </StrictMode>,
);
