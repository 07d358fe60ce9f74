// The addresses of the page, in the part after `#`: they work behind any path prefix and need no route of the server.

import { useEffect, useState } from "preact/hooks";

export type Route =
  | { readonly view: "new" | "missing" }
  | {
      readonly view: "thread";
      readonly thread: string;
      readonly run?: string | undefined;
      readonly tab?: string | undefined;
      /** The message that is brought into sight, and the words that are marked in it. */
      readonly message?: string | undefined;
      readonly words?: string | undefined;
      /** In a trace: the message or the call whose span is selected. */
      readonly span?: string | undefined;
    }
  | { readonly view: "inbox" | "runs" | "usage" | "tools" | "settings" }
  | { readonly view: "agents"; readonly agent?: string }
  | { readonly view: "shared"; readonly user: string; readonly thread: string; readonly share: string }
  | { readonly view: "admin"; readonly tab?: string }
  | { readonly view: "compare"; readonly runs: readonly [RunPlace, RunPlace] };

export interface RunPlace {
  readonly thread: string;
  readonly run: string;
}

const PLAIN = ["inbox", "runs", "usage", "tools", "settings"] as const;

/** `#/t/a/r/run_1/trace` is the trace of a run (`/msg_1` behind it: at that span), `#/t/a/files` the files beside a thread, `#/t/a/m/msg_1` a message in it. `missing`: the page has no such address. */
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
  if (first === "admin" && rest.length < 2) return { view: "admin", ...(one ? { tab: one } : {}) };
  if (first === "" && rest.length === 0) return { view: "new" };
  const view = rest.length > 0 ? undefined : PLAIN.find((name) => name === first);
  return { view: view ?? "missing" };
}

/** Whether the run is shown over the whole width under this address. */
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
  if (route.view === "admin") return route.tab ? `#/admin/${encodeURIComponent(route.tab)}` : "#/admin";
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

/** What the history keeps of an open drawer. */
export const DRAWER = { isDrawer: true };

export function go(route: Route): void {
  const isOpen = history.state?.isDrawer === true;
  if (!isOpen) location.hash = hashOf(route);
  else replaceAddress(hashOf(route), isBeside(route) ? DRAWER : null);
}

/** Whether the drawer that is open belongs to what the route shows. */
function isBeside(route: Route): boolean {
  const now = routeOf(location.hash);
  return now.view === "thread" && route.view === "thread" && now.thread === route.thread;
}

/** An address in the history's place of the one before. */
export function replaceAddress(hash: string, state: typeof DRAWER | null): void {
  history.replaceState(state, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The route of the address, followed as it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const follow = () => setRoute(routeOf(location.hash));
    addEventListener("hashchange", follow);
    // It may have changed before this effect ran.
    follow();
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

/** An address that a person has typed may be no valid encoding. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
