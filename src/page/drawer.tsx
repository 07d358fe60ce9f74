// A dialog at the edge of a narrow screen. The browser's Back button closes it, as on a phone.

import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Dialog } from "./components.tsx";
import { DRAWER, replaceAddress } from "./routes.ts";

export function Drawer(props: {
  title: string;
  class: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const close = useRef(props.onClose);
  close.current = props.onClose;
  // Before the user can press Back.
  useLayoutEffect(() => {
    // After a reload, or for a URL that opens the drawer, the history already contains the drawer's entry.
    if (!history.state?.isDrawer) history.pushState(DRAWER, "");
    let isLeft = false;
    const onBack = () => {
      isLeft = true;
      close.current();
    };
    addEventListener("popstate", onBack);
    return () => {
      removeEventListener("popstate", onBack);
      // A button or a key closed the drawer, so remove its entry from the history.
      if (!isLeft && history.state?.isDrawer) history.back();
    };
  }, []);
  return (
    <Dialog title={props.title} class={`drawer ${props.class}`} onClose={props.onClose}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it sees the clicks on links, which the keyboard makes too. */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: as above. */}
      <div class="drawer-body" onClick={(event) => followLink(event, props.onClose)}>
        {props.children}
      </div>
    </Dialog>
  );
}

/**
 * Follows a link in the drawer. The link's URL replaces the drawer's history entry, so Back returns to the page that
 * opened the drawer.
 */
function followLink(event: TargetedMouseEvent<HTMLElement>, close: () => void): void {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const hash = link?.getAttribute("href");
  if (!hash?.startsWith("#") || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0)
    return;
  event.preventDefault();
  replaceAddress(hash, null);
  close();
}
