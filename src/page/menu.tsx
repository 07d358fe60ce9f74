// The navigation: links to all threads and views. It is a column, or a drawer on a narrow screen.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { visible } from "./components.tsx";
import { Drawer } from "./drawer.tsx";
import { useTouched } from "./frame.ts";
import { questions } from "./questions.ts";
import { hashOf, type Route, useRoute } from "./routes.ts";
import { baseUrl, may, session } from "./session.ts";
import { t } from "./texts.ts";
import { Mark } from "./views/mark.tsx";
import { ThreadList } from "./views/thread-list.tsx";

export function Navigation({ route }: { route: Route }) {
  return (
    <>
      <a class="brand" href={hashOf({ view: "new" })}>
        <Mark /> Skein
      </a>
      {may("run") && (
        <a
          class="button begin"
          href={hashOf({ view: "new" })}
          aria-current={route.view === "new" ? "page" : undefined}
        >
          <span aria-hidden="true">+</span> {t().navigation.newConversation}
        </a>
      )}
      <ThreadList current={route.view === "thread" ? route.thread : undefined} />
      <ul class="places">
        <Link to={{ view: "inbox" }} route={route}>
          {t().navigation.inbox} <InboxCount />
        </Link>
        <Link to={{ view: "runs" }} route={route}>
          {t().navigation.runs}
        </Link>
        <Link to={{ view: "usage" }} route={route}>
          {t().navigation.usage}
        </Link>
        <Link to={{ view: "agents" }} route={route}>
          {t().navigation.agents}
        </Link>
        <Link to={{ view: "schedules" }} route={route}>
          {t().navigation.schedules}
        </Link>
        <Link to={{ view: "tools" }} route={route}>
          {t().navigation.tools}
        </Link>
        {(may("admin") || may("operator")) && (
          <Link to={{ view: "admin" }} route={route}>
            {t().navigation.admin}
          </Link>
        )}
        <Link to={{ view: "settings" }} route={route}>
          {t().navigation.settings}
        </Link>
      </ul>
      <Whereabouts />
    </>
  );
}

/** The user, the server's version and a link to the documentation. */
function Whereabouts() {
  const { me } = useTouched(session);
  if (!me) return null;
  return (
    <p class="whereabouts">
      <span title={t().navigation.signedInAs(me.user, me.tenant)}>
        <Who {...me} />
      </span>
      <span title={baseUrl}>
        {location.host} · {me.version}
      </span>
      <a href="docs">{t().navigation.docs}</a>
    </p>
  );
}

/** Without sign-in, every visitor is the default user, so the name is hidden. */
function Who({ user, tenant }: { user: string; tenant: string }) {
  if (user === DEFAULT && tenant === DEFAULT) return <>{t().navigation.noSignIn}</>;
  return (
    <>
      <bdi>{visible(user)}</bdi> · <bdi>{visible(tenant)}</bdi>
    </>
  );
}

const DEFAULT = "default";

const Link = ({ to, route, children }: { to: Route; route: Route; children: ComponentChildren }) => (
  <li>
    <a href={hashOf(to)} aria-current={to.view === route.view ? "page" : undefined}>
      {children}
    </a>
  </li>
);

/** On a narrow screen, the navigation is a drawer. */
export function Menu() {
  const [isOpen, setOpen] = useState(false);
  const route = useRoute();
  return (
    <>
      <button
        type="button"
        class="narrow quiet"
        aria-label={t().navigation.menu}
        onClick={() => setOpen(true)}
      >
        ☰
      </button>
      {isOpen && (
        <Drawer title="Skein" class="menu" onClose={() => setOpen(false)}>
          <Navigation route={route} />
        </Drawer>
      )}
    </>
  );
}

/** The number of open questions, next to the link to the inbox. */
function InboxCount() {
  const { items, isCut } = useTouched(questions);
  const count = `${items.length}${isCut ? "+" : ""}`;
  const isEmpty = items.length === 0;
  if (isEmpty) return null;
  return (
    <span class="badge">
      <span aria-hidden="true">{count}</span>
      <span class="unseen">{t().navigation.wait(items.length, count)}</span>
    </span>
  );
}
