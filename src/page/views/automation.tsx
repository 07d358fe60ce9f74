// The view of schedules, which run an agent at given times, and of triggers, which run an agent when another service
// calls.

import { lazy } from "../lazy.tsx";
import { go } from "../routes.ts";
import { Tabs } from "../tabs.tsx";
import { scheduleTexts } from "../texts/schedules.ts";
import { triggerTexts } from "../texts/triggers.ts";
import { PageView } from "./page-view.tsx";
import { Schedules } from "./schedules.tsx";

const Triggers = lazy(async () => (await import("./triggers.tsx")).Triggers);

export function Automation({ tab = "schedules" }: { tab?: string | undefined }) {
  const words = scheduleTexts();
  return (
    <PageView title={words.page}>
      <Tabs
        label={words.page}
        current={tab}
        onChange={(name) => go({ view: "schedules", tab: name })}
        tabs={{
          schedules: { title: words.title, body: () => <Schedules /> },
          triggers: { title: triggerTexts().title, body: () => <Triggers /> },
        }}
      />
    </PageView>
  );
}
