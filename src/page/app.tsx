// The frame of the page: the threads on the left, and the view for the URL in the middle. A user who is not signed in
// sees the sign-in form.

import { useCallback, useEffect, useState } from "preact/hooks";
import { followChanges } from "./changes.ts";
import { followEnds } from "./ends.ts";
import { useTouched } from "./frame.ts";
import { followKeys, useKey } from "./keys.ts";
import { lazy } from "./lazy.tsx";
import { Navigation } from "./menu.tsx";
import { followNotifications } from "./notifications.ts";
import { followQuestions } from "./questions.ts";
import { go, hashOf, isRunTab, type Route, routeOf, useRoute } from "./routes.ts";
import { session } from "./session.ts";
import { useTab } from "./tab.ts";
import { followThreads } from "./threads.ts";
import { NewConversation } from "./views/new-conversation.tsx";
import { Palette } from "./views/palette.tsx";
import { Skip, useFocusInView } from "./views/skip.tsx";
import { Undo } from "./views/undo.tsx";

const Admin = lazy(async () => (await import("./views/admin.tsx")).Admin);
const Agents = lazy(async () => (await import("./views/agents.tsx")).Agents);
const Automation = lazy(async () => (await import("./views/automation.tsx")).Automation);
const Compare = lazy(async () => (await import("./views/compare.tsx")).Compare);
const readConversation = async () => (await import("./views/conversation.tsx")).Conversation;
const Conversation = lazy(readConversation);
const KeysDialog = lazy(async () => (await import("./views/keys.tsx")).KeysDialog);
const Inbox = lazy(async () => (await import("./views/inbox.tsx")).Inbox);
const Missing = lazy(async () => (await import("./views/missing.tsx")).Missing);
const Run = lazy(async () => (await import("./views/run.tsx")).Run);
const Runs = lazy(async () => (await import("./views/runs.tsx")).Runs);
const Settings = lazy(async () => (await import("./views/settings.tsx")).Settings);
const Shared = lazy(async () => (await import("./views/shared.tsx")).Shared);
const SignIn = lazy(async () => (await import("./views/sign-in.tsx")).SignIn);
const Tools = lazy(async () => (await import("./views/tools.tsx")).Tools);
const Usage = lazy(async () => (await import("./views/usage.tsx")).Usage);

// If the URL names a conversation, load its code while the server identifies the user.
if (routeOf(location.hash).view === "thread") void readConversation().catch(() => {});

export function App() {
  const route = useRoute();
  const { state } = useTouched(session);
  useEffect(() => (state === "signed_in" ? followAll() : undefined), [state]);
  useFocusInView(route);
  if (state !== "signed_in") return <SignIn />;
  return <Signed route={route} />;
}

function Signed({ route }: { route: Route }) {
  useTab(route);
  useEffect(() => {
    // A user who starts to write will see a conversation next.
    const ahead = () => void readConversation().catch(() => {});
    addEventListener("keydown", ahead, { once: true });
    return () => removeEventListener("keydown", ahead);
  }, []);
  return (
    <div class="columns">
      <Skip route={route} />
      <nav class="column" aria-label="Skein">
        <Navigation route={route} />
      </nav>
      <View route={route} />
      <Keys />
      <Undo />
    </div>
  );
}

/** Binds the keys that work in every view. */
function Keys() {
  const [isOpen, setOpen] = useState(false);
  useKey(
    "?",
    "list",
    useCallback(() => setOpen(true), []),
  );
  useKey("n", "begin", begin);
  useKey("g i", "inbox", toInbox);
  useKey("/", "search", search);
  useKey("j", "next", next);
  useKey("k", "before", before);
  const [hasPalette, setPalette] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      if (event.altKey || event.shiftKey) return;
      event.preventDefault();
      // Does not open over another dialog.
      setPalette((is) => !is && document.querySelector("dialog[open]") === null);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (hasPalette) return <Palette onClose={() => setPalette(false)} />;
  return isOpen ? <KeysDialog onClose={() => setOpen(false)} /> : null;
}

const begin = () => {
  go({ view: "new" });
  document.querySelector<HTMLElement>(".is-new textarea")?.focus();
};
const toInbox = () => go({ view: "inbox" });
/** On a narrow screen, the search field is in the drawer. */
const search = () => {
  const field = () =>
    [...document.querySelectorAll<HTMLElement>(".threads .search")].find((each) => each.checkVisibility());
  if (!field()) document.querySelector<HTMLElement>(".head button.narrow")?.click();
  setTimeout(() => field()?.focus());
};
const next = () => move(1);
const before = () => move(-1);

function move(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".thread > a")];
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const found = links[at < 0 ? 0 : at + step];
  found?.click();
  found?.scrollIntoView({ block: "nearest" });
}

/** Keeps the data that every view needs up to date. Returns a function that stops the updates. */
function followAll(): () => void {
  const ends = [
    followChanges(),
    followThreads(),
    followEnds(),
    followQuestions(),
    followKeys(),
    followNotifications(),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function View({ route }: { route: Route }) {
  switch (route.view) {
    case "new":
      return <NewConversation />;
    case "missing":
      return <Missing />;
    case "thread":
      if (route.run && isRunTab(route.tab))
        return (
          <Run
            key={route.run}
            {...{ thread: route.thread, run: route.run, tab: route.tab, span: route.span }}
          />
        );
      return <Conversation key={route.thread} thread={route.thread} run={route.run} tab={route.tab} />;
    case "shared":
      return <Shared key={route.share} {...route} />;
    case "inbox":
      return <Inbox />;
    case "runs":
      return <Runs />;
    case "usage":
      return <Usage />;
    case "agents":
      return <Agents agent={route.agent} />;
    case "admin":
      return <Admin tab={route.tab} />;
    case "schedules":
      return <Automation tab={route.tab} />;
    case "compare":
      return <Compare key={hashOf(route)} runs={route.runs} />;
    case "tools":
      return <Tools tab={route.tab} />;
    case "settings":
      return <Settings />;
  }
}
