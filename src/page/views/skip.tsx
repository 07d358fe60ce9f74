// Lets keyboard users skip the navigation, and moves the focus into a new view.

import { useEffect, useRef } from "preact/hooks";
import { hashOf, type Route } from "../routes.ts";
import { t } from "../texts.ts";

const FIELD = "main .composer textarea";

/** Visible while it has focus. */
export function Skip({ route }: { route: Route }) {
  const hasField = route.view === "new" || route.view === "thread";
  return (
    <nav class="skip" aria-label={t().skip.title}>
      {hasField && (
        <button type="button" onClick={() => document.querySelector<HTMLElement>(FIELD)?.focus()}>
          {t().skip.toField}
        </button>
      )}
      <button type="button" onClick={focusHeading}>
        {t().skip.toContent}
      </button>
    </nav>
  );
}

function focusHeading(): boolean {
  const heading = document.querySelector<HTMLElement>("main h1");
  if (!heading) return false;
  heading.tabIndex = -1;
  heading.focus();
  return true;
}

/** After a change of view, moves the focus to the view's heading, unless the view has already moved it. */
export function useFocusInView(route: Route): void {
  const place = hashOf(route.view === "thread" ? { view: "thread", thread: route.thread } : route);
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return undefined;
    before.current = place;
    const drawn = new MutationObserver(() => isThere() && drawn.disconnect());
    // Some views are loaded when they are first shown.
    if (!isThere()) drawn.observe(document.body, { childList: true, subtree: true });
    return () => drawn.disconnect();
  }, [place]);
}

const isThere = (): boolean => document.activeElement?.closest("main, dialog") != null || focusHeading();
