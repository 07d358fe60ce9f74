// Lets people who use the keyboard pass the navigation, and puts the focus on the view that they have gone to.

import { useEffect, useRef } from "preact/hooks";
import { hashOf, type Route } from "../routes.ts";
import { t } from "../texts.ts";

const FIELD = "main .composer textarea";

/** Seen while it has the focus. */
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

/** After a change of view the focus is in it: where the view has put it, or on its heading. */
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
