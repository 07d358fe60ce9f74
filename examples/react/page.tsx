// A chat in a thread, with streamed text, calls, todos and questions. You can reload it in the middle of an answer or open
// it twice, because the thread is on the server. `#my-thread` in the URL selects the thread, and `?server=` the address of Skein.
//
// In your own app, import from "skein/client" and "skein/client/thread".
// Test it:  npm test -- test/examples/react.test.ts

import { memo, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { createClient } from "../../src/client/client.ts";
import { type Cell as AnyCell, shown } from "../../src/client/thread.ts";
import { useThread } from "./use-thread.ts";

const settings = new URLSearchParams(location.search);
const client = createClient({ baseUrl: settings.get("server") ?? location.origin });

/** Unchanged cells are the same objects, so `memo` skips them. */
const Cell = memo(function Cell({ cell }: { cell: AnyCell }) {
  if (cell.kind === "user") return <article aria-label="user">{cell.text}</article>;
  if (cell.kind === "text") return <article aria-label="assistant">{cell.text}</article>;
  if (cell.kind === "tool")
    return (
      <details open={cell.state !== "done"}>
        <summary>
          {cell.name}: {cell.state}
        </summary>
        <pre>{JSON.stringify(cell.args)}</pre>
        <pre>{shown(cell.output)}</pre>
      </details>
    );
  return cell.kind === "note" ? <p>{cell.text}</p> : null;
});

function Chat({ threadId }: { threadId: string }) {
  const { state, problem, connection, run, cells, todos, asks, ...thread } = useThread(client, threadId);
  const [error, setError] = useState("");
  const act = (done: Promise<unknown>) =>
    void done.then(
      () => setError(""),
      ({ message }) => setError(message),
    );
  const say = (form: FormData) => {
    const text = String(form.get("text"));
    act(run.isActive ? thread.steer(text) : thread.send(text));
  };
  return (
    <main>
      {cells.map((cell) => (
        <Cell key={cell.key} cell={cell} />
      ))}
      <ul>
        {todos.map(({ id, title, status }) => (
          <li key={id}>
            {title}: {status}
          </li>
        ))}
      </ul>
      {asks.map(({ id, prompt }) => (
        <p key={id}>
          {prompt}
          <button type="button" onClick={() => act(thread.answer({ id, decision: "approve" }))}>
            Approve
          </button>
          <button type="button" onClick={() => act(thread.answer({ id, decision: "deny" }))}>
            Deny
          </button>
        </p>
      ))}
      <output>
        {connection === "reconnecting" ? connection : state === "ready" ? run.phase.name : state}
      </output>
      {(error || problem) && <p role="alert">{error || problem?.message}</p>}
      <form action={say}>
        <input name="text" aria-label="Message" required />
        <button type="submit">{run.isActive ? "Steer" : "Send"}</button>
        {run.isActive && (
          <button type="button" onClick={() => act(thread.stop())}>
            Stop
          </button>
        )}
      </form>
    </main>
  );
}

const root = createRoot(document.body.appendChild(document.createElement("div")));
root.render(
  <StrictMode>
    <Chat threadId={location.hash.slice(1) || "my-thread"} />
  </StrictMode>,
);
