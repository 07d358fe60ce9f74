// The way to every thread and view: a column, on a narrow screen a drawer.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "./components.tsx";
import { useTouched } from "./frame.ts";
import { questions } from "./questions.ts";
import { hashOf, type Route, useRoute } from "./routes.ts";
import { may } from "./session.ts";
import { t } from "./texts.ts";
import { ThreadList } from "./views/thread-list.tsx";

export function Navigation({ route }: { route: Route }) {
  return (
    <>
      {may("run") && (
        <a
          class="button"
          href={hashOf({ view: "new" })}
          aria-current={route.view === "new" ? "page" : undefined}
        >
          + New conversation
        </a>
      )}
      <ThreadList current={route.view === "thread" ? route.thread : undefined} />
      <ul class="places">
        <Link to={{ view: "inbox" }} route={route}>
          Inbox <InboxCount />
        </Link>
        <Link to={{ view: "runs" }} route={route}>
          Runs
        </Link>
        <Link to={{ view: "usage" }} route={route}>
          Usage
        </Link>
        <Link to={{ view: "agents" }} route={route}>
          Agents
        </Link>
        <Link to={{ view: "tools" }} route={route}>
          Tools
        </Link>
        {(may("admin") || may("operator")) && (
          <Link to={{ view: "admin" }} route={route}>
            {t().admin.title}
          </Link>
        )}
        <Link to={{ view: "settings" }} route={route}>
          Settings
        </Link>
      </ul>
    </>
  );
}

const Link = ({ to, route, children }: { to: Route; route: Route; children: ComponentChildren }) => (
  <li>
    <a href={hashOf(to)} aria-current={to.view === route.view ? "page" : undefined}>
      {children}
    </a>
  </li>
);

/** On a narrow screen the navigation is a drawer. */
export function Menu() {
  const [isOpen, setOpen] = useState(false);
  const route = useRoute();
  return (
    <>
      <button type="button" class="narrow quiet" aria-label="Threads and pages" onClick={() => setOpen(true)}>
        ☰
      </button>
      {isOpen && (
        <Dialog title="Skein" class="drawer" onClose={() => setOpen(false)}>
          <Navigation route={route} />
        </Dialog>
      )}
    </>
  );
}

/** How many questions wait, beside the link to the inbox and before the title of the page. */
function InboxCount() {
  const { items, isCut } = useTouched(questions);
  const count = `${items.length}${isCut ? "+" : ""}`;
  const isEmpty = items.length === 0;
  useEffect(() => {
    document.title = isEmpty ? "Skein" : `(${count}) Skein`;
  }, [count, isEmpty]);
  if (isEmpty) return null;
  return (
    <span class="badge">
      <span aria-hidden="true">{count}</span>
      <span class="unseen">{items.length === 1 ? "1 question waits" : `${count} questions wait`}</span>
    </span>
  );
}
