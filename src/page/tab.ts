// The title and icon of the browser tab.

import { useEffect, useState } from "preact/hooks";
import { onChange } from "./changes.ts";
import { useTouched } from "./frame.ts";
import { iconOf, type Sign } from "./mark.ts";
import { questions } from "./questions.ts";
import type { Route } from "./routes.ts";
import { t } from "./texts.ts";
import { threads } from "./threads.ts";

const MARKS: Readonly<Record<Sign, string>> = { running: "●", waiting: "?", done: "✓" };

/** `● Quarterly report · Skein`. */
export const titleOfTab = (name: string, sign: Sign | undefined): string =>
  [sign && MARKS[sign], name && `${name} ·`, "Skein"].filter(Boolean).join(" ");

/** Updates the title and icon of the tab from the URL and the runs. */
export function useTab(route: Route): void {
  const { items } = useTouched(threads);
  const asked = useTouched(questions).items;
  const isSeen = useSeen(route);
  const own = route.view === "thread" ? route.thread : undefined;
  const isMine = (id: string) => own === undefined || id === own;
  const thread = items.find(({ id }) => id === own);
  const isRunning = items.some(({ id, status }) => isMine(id) && status === "busy");
  const isAsked = asked.some(({ thread_id }) => isMine(thread_id));
  const sign: Sign | undefined = isAsked ? "waiting" : isRunning ? "running" : isSeen ? undefined : "done";
  const name = nameOf(route, thread?.title);
  useEffect(() => {
    document.title = titleOfTab(name, sign);
  }, [name, sign]);
  useEffect(() => showIcon(sign), [sign]);
}

function nameOf(route: Route, title: string | undefined): string {
  switch (route.view) {
    case "thread":
      return title || t().door.conversation;
    case "new":
      return t().door.newConversation;
    case "missing":
      return t().door.noSuchPage;
    case "shared":
      return t().sharing.conversation;
    case "compare":
      return t().compare.title;
    default:
      return t().navigation[route.view];
  }
}

/** Returns whether the user has seen the page since a run on it ended. */
function useSeen(route: Route): boolean {
  const [isSeen, setSeen] = useState(true);
  const own = route.view === "thread" ? route.thread : undefined;
  useEffect(() => {
    const forget = onChange((change) => {
      if (change.event !== "run_ended" || !document.hidden) return;
      const { thread_id, status } = change.data;
      if (status !== "interrupted" && (own ?? thread_id) === thread_id) setSeen(false);
    });
    const look = () => document.hidden || setSeen(true);
    document.addEventListener("visibilitychange", look);
    return () => {
      forget();
      document.removeEventListener("visibilitychange", look);
    };
  }, [own]);
  return isSeen;
}

let plain: string | undefined;

function showIcon(sign: Sign | undefined): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link) return;
  plain ??= link.href;
  link.href = sign ? `data:image/svg+xml,${encodeURIComponent(iconOf({ round: 8, sign }))}` : plain;
}
