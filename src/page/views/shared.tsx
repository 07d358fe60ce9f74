// A conversation shared by another user. It is read-only.

import { useEffect, useState } from "preact/hooks";
import { type Message, ProblemError, type SharedPlace } from "../../client/client.ts";
import { createFold } from "../../client/fold.ts";
import { Empty, Problem, useRead, visible } from "../components.tsx";
import { touch } from "../frame.ts";
import { Menu } from "../menu.tsx";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { Cells } from "./cells.tsx";
import { ThreadOf } from "./thread-of.ts";

export function Shared({ user, thread, share }: SharedPlace) {
  const words = t().sharing;
  const { value, problem } = useRead(
    (signal) => read({ user, thread, share }, signal).catch(nullIfEnded),
    [user, thread, share],
  );
  const [fold] = useState(() => createFold({ touch }));
  useEffect(() => {
    if (value)
      fold.begin({ state: { thread_id: thread, status: "idle", version: 0, messages: value.messages } });
  }, [value, fold, thread]);
  const title = value?.about.title ? visible(value.about.title) : words.conversation;
  return (
    <main class="conversation shared" aria-label={words.conversation}>
      <header class="head thread-head">
        <Menu />
        <div class="about">
          <h1>{title}</h1>
          <p class="summary">{words.by(visible(user))}</p>
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it. */}
      <section class="log" tabIndex={0} aria-label={words.messages}>
        <div class="messages">
          <h2 class="unseen">{words.messages}</h2>
          <ThreadOf.Provider value={{ thread: "", agent: value?.about.agent ?? words.assistant }}>
            <Cells lane={fold.page.lane} />
          </ThreadOf.Provider>
          {value === undefined && !problem && <Empty>{words.reading}</Empty>}
          {value === null && <Empty>{words.ended}</Empty>}
          <Problem>{problem ?? ""}</Problem>
        </div>
      </section>
    </main>
  );
}

function nullIfEnded(error: unknown): null {
  if (error instanceof ProblemError && error.status === 404) return null;
  throw error;
}

async function read(place: SharedPlace, signal: AbortSignal) {
  const about = await client.shares.get(place, signal);
  const messages: Message[] = [];
  for (;;) {
    const after = messages.at(-1)?.id;
    const page = await client.shares.messages(place, after ? { after } : {}, signal);
    messages.push(...page.items);
    if (page.next_cursor === undefined || page.items.length === 0) return { about, messages };
  }
}
