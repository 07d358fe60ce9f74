// The open questions of all threads.

import type { OpenInterrupt } from "../../client/client.ts";
import { Empty, Problem, useRead, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { questions } from "../questions.ts";
import { hashOf } from "../routes.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { threads } from "../threads.ts";
import { PageView } from "./page-view.tsx";
import { Questions } from "./questions.tsx";

export function Inbox() {
  const { items, isRead, isCut, problem, notice } = useTouched(questions);
  const ids = [...new Set(items.map(({ thread_id }) => thread_id))];
  return (
    <PageView title={t().inbox.title}>
      <div class="inbox">
        <Problem>{problem}</Problem>
        <p role="status" class="notice">
          {notice}
        </p>
        {ids.map((id) => (
          <OfThread
            key={id}
            id={id}
            isOnly={items.length === 1}
            asks={items.filter(({ thread_id }) => thread_id === id)}
          />
        ))}
        {isCut && <Empty>{t().inbox.more}</Empty>}
        {isRead && items.length === 0 && <Empty>{t().inbox.none}</Empty>}
      </div>
    </PageView>
  );
}

function OfThread({ id, asks, isOnly }: { id: string; asks: readonly OpenInterrupt[]; isOnly: boolean }) {
  const { items } = useTouched(threads);
  const listed = items.find((thread) => thread.id === id);
  const isListed = listed !== undefined;
  const { value } = useRead(
    async (signal) => (isListed ? undefined : client.threads.get(id, signal)),
    [id, isListed],
  );
  const { title, agent } = listed ?? value ?? {};
  return (
    <section class="inbox-thread">
      <h2>
        <a href={hashOf({ view: "thread", thread: id })}>
          <bdi>{visible(title || id)}</bdi>
        </a>
        {agent && <small>{visible(agent)}</small>}
      </h2>
      <Questions thread={id} asks={asks} isOnly={isOnly} />
    </section>
  );
}
