// The page's URLs, in the part after `#`. They work behind any path prefix and need no route on the server.

import { useEffect, useState } from "preact/hooks";

export type Route =
  | { readonly view: "new" | "missing" }
  | {
      readonly view: "thread";
      readonly thread: string;
      readonly run?: string | undefined;
      readonly tab?: string | undefined;
      /** The message to scroll to, and the words to mark in it. */
      readonly message?: string | undefined;
      readonly words?: string | undefined;
      /** In a trace: the message or call whose span is selected. */
      readonly span?: string | undefined;
    }
  | { readonly view: (typeof PLAIN)[number] }
  | { readonly view: "agents"; readonly agent?: string }
  | { readonly view: "shared"; readonly user: string; readonly thread: string; readonly share: string }
  | { readonly view: (typeof TABBED)[number]; readonly tab?: string }
  | { readonly view: "compare"; readonly runs: readonly [RunPlace, RunPlace] };

export interface RunPlace {
  readonly thread: string;
  readonly run: string;
}

const PLAIN = ["inbox", "runs", "usage", "settings"] as const;
/** The views with tabs. In the URL, the name of the tab follows the name of the view. */
const TABBED = ["admin", "schedules", "tools"] as const;

/**
 * `#/t/a/r/run_1/trace` is the trace of a run; `/msg_1` after it selects a span. `#/t/a/files` shows files next to a
 * thread, and `#/t/a/m/msg_1` a message. `missing`: the page has no such URL.
 */
export function routeOf(hash: string): Route {
  const [first = "", ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  const [one, two, three, four, five] = rest;
  if (first === "t" && one) {
    if (two === "m" && three)
      return { view: "thread", thread: one, message: three, ...(four ? { words: four } : {}) };
    const [run, tab] = two === "r" ? [three, four] : [undefined, two];
    const span = run && tab && five ? { span: five } : {};
    return { view: "thread", thread: one, ...(run ? { run } : {}), ...(tab ? { tab } : {}), ...span };
  }
  if (first === "shared" && one && two && three)
    return { view: "shared", user: one, thread: two, share: three };
  if (first === "compare" && one && two && three && four)
    return {
      view: "compare",
      runs: [
        { thread: one, run: two },
        { thread: three, run: four },
      ],
    };
  if (first === "agents" && rest.length < 2) return { view: "agents", ...(one ? { agent: one } : {}) };
  const tabbed = rest.length < 2 ? TABBED.find((name) => name === first) : undefined;
  if (tabbed) return { view: tabbed, ...(one ? { tab: one } : {}) };
  if (first === "" && rest.length === 0) return { view: "new" };
  const view = rest.length > 0 ? undefined : PLAIN.find((name) => name === first);
  return { view: view ?? "missing" };
}

/** Returns whether this URL shows the run across the full width. */
export const isRunTab = (tab: string | undefined): tab is string => tab === "trace" || tab === "events";

export function hashOf(route: Route): string {
  if (route.view === "new" || route.view === "missing") return "#/";
  if (route.view === "agents")
    return route.agent ? `#/agents/${encodeURIComponent(route.agent)}` : "#/agents";
  if (route.view === "compare")
    return `#/compare/${route.runs
      .flatMap(({ thread, run }) => [thread, run])
      .map(encodeURIComponent)
      .join("/")}`;
  if (route.view === "shared")
    return `#/shared/${[route.user, route.thread, route.share].map(encodeURIComponent).join("/")}`;
  if ("tab" in route && route.view !== "thread")
    return route.tab ? `#/${route.view}/${encodeURIComponent(route.tab)}` : `#/${route.view}`;
  if (route.view !== "thread") return `#/${route.view}`;
  const { thread, run, tab, message, words, span } = route;
  const place = message ? ["m", message, ...(words ? [words] : [])] : [];
  const parts = [
    "t",
    thread,
    ...place,
    ...(run ? ["r", run] : []),
    ...(tab ? [tab] : []),
    ...(span ? [span] : []),
  ];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** The history state of an open drawer. */
export const DRAWER = { isDrawer: true };

export function go(route: Route): void {
  const isOpen = history.state?.isDrawer === true;
  if (!isOpen) location.hash = hashOf(route);
  else replaceAddress(hashOf(route), isBeside(route) ? DRAWER : null);
}

/** Returns whether the open drawer belongs to the content of the route. */
function isBeside(route: Route): boolean {
  const now = routeOf(location.hash);
  return now.view === "thread" && route.view === "thread" && now.thread === route.thread;
}

/** Replaces the current URL in the history. */
export function replaceAddress(hash: string, state: typeof DRAWER | null): void {
  history.replaceState(state, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Returns the route for the URL and redraws when the URL changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const follow = () => setRoute(routeOf(location.hash));
    addEventListener("hashchange", follow);
    // The URL may have changed before this effect ran.
    follow();
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

/** A typed URL may contain an invalid escape. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
