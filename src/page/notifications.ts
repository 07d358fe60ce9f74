// Browser notifications for a user who is looking at something else: a run has ended, has failed, or waits for an
// answer.

import type { UserEvent } from "../client/client.ts";
import { onChange } from "./changes.ts";
import { visible } from "./components.tsx";
import { go } from "./routes.ts";
import { t } from "./texts.ts";
import { threads } from "./threads.ts";

const SETTING = "skein.notifications";

/**
 * `none`: the browser does not support them, for example on plain http. `blocked`: the user has blocked them in the
 * browser.
 */
export type Notifications = "on" | "off" | "blocked" | "none";

export function notifications(): Notifications {
  if (!("Notification" in globalThis) || !isSecureContext) return "none";
  if (Notification.permission === "denied") return "blocked";
  return localStorage.getItem(SETTING) === "on" && Notification.permission === "granted" ? "on" : "off";
}

/** The browser asks the user for permission the first time. */
export async function setNotifications(isOn: boolean): Promise<void> {
  localStorage.setItem(SETTING, isOn ? "on" : "off");
  if (isOn) await Notification.requestPermission();
}

/** Returns a function that stops the notifications. */
export const followNotifications = (): (() => void) =>
  onChange((change) => {
    if (change.event === "read_again" || !isElsewhere() || notifications() !== "on") return;
    const said = wordsOf(change);
    if (said) show(said);
  });

const isElsewhere = () => document.hidden || !document.hasFocus();

interface NotificationText {
  readonly thread: string;
  readonly text: string;
}

function wordsOf(change: UserEvent): NotificationText | undefined {
  const words = t().notifications;
  switch (change.event) {
    case "interrupt_opened":
      return { thread: change.data.thread_id, text: words.needsYou };
    case "run_ended": {
      const { thread_id: thread, status } = change.data;
      if (status === "success") return { thread, text: words.ended };
      return status === "error" ? { thread, text: words.failed } : undefined;
    }
    default:
      return undefined;
  }
}

/**
 * Shows notifications only for conversations in the list, which does not contain the threads of subagents. If several
 * tabs show the same notification, the browser shows it once.
 */
function show({ thread, text }: NotificationText): void {
  const listed = threads.items.find(({ id }) => id === thread);
  if (!listed) return;
  try {
    const notification = new Notification(visible(listed.title || thread), { body: text, tag: thread });
    notification.onclick = () => {
      focus();
      go({ view: "thread", thread });
      notification.close();
    };
  } catch {
    // On phones, a page cannot show notifications without a service worker.
  }
}
