// Starts a conversation. A user who may only read gets a list of conversations.

import { Empty, Time, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { Menu } from "../menu.tsx";
import { go, hashOf } from "../routes.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { readThreads, threads } from "../threads.ts";
import { useAttachments } from "./attachments.tsx";
import { Composer } from "./composer.tsx";
import { dropInto } from "./drop.ts";
import { Mark } from "./mark.tsx";
import { titleOfThread } from "./thread-list.tsx";

export const NewConversation = () => (may("run") ? <Begin /> : <LookOnly />);

function Begin() {
  const attachments = useAttachments();
  return (
    <main class="conversation is-new" aria-label={t().door.conversation} {...dropInto(attachments.add)}>
      <Head />
      <section class="log">
        <div class="welcome">
          <h2>
            <Mark /> {t().door.whatCanIDo}
          </h2>
          <p>{t().door.about}</p>
        </div>
      </section>
      <Composer
        attachments={attachments}
        placeholder={t().door.write}
        onRewritten={() => {}}
        onStarted={({ thread_id }) => {
          readThreads();
          go({ view: "thread", thread: thread_id });
        }}
      />
    </main>
  );
}

const NEWEST = 12;

function LookOnly() {
  const { items, isRead } = useTouched(threads);
  return (
    <main class="conversation is-new is-read-only" aria-label={t().door.conversations}>
      <Head />
      <section class="log">
        <div class="welcome">
          <h2>
            <Mark /> {t().door.youMayLook}
          </h2>
          <p>{t().door.lookOnly}</p>
          <ul aria-label={t().door.newest}>
            {items.slice(0, NEWEST).map((thread) => (
              <li key={thread.id}>
                <a href={hashOf({ view: "thread", thread: thread.id })}>
                  <bdi>{visible(titleOfThread(thread))}</bdi>
                  <Time at={thread.updated_at} />
                </a>
              </li>
            ))}
          </ul>
          {isRead && items.length === 0 && <Empty>{t().door.nothingToRead}</Empty>}
        </div>
      </section>
    </main>
  );
}

const Head = () => (
  <header class="head">
    <Menu />
    <h1>{may("run") ? t().door.newConversation : t().door.conversations}</h1>
  </header>
);
