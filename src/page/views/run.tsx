// One run, over the whole width: its trace or its events.

import { Tabs } from "../components.tsx";
import { Menu } from "../menu.tsx";
import { go, hashOf } from "../routes.ts";
import { RawEvents } from "./events.tsx";
import { Trace } from "./trace.tsx";

export interface RunProps {
  readonly thread: string;
  readonly run: string;
  readonly tab: string;
}

export const Run = ({ thread, run, tab }: RunProps) => (
  <main class="page-view" aria-label="Run">
    <header class="head">
      <Menu />
      <h1>Run {run}</h1>
      <a class="button" href={hashOf({ view: "thread", thread })}>
        Conversation
      </a>
    </header>
    <div class="body">
      <Tabs
        label="Run"
        current={tab}
        onChange={(name) => go({ view: "thread", thread, run, tab: name })}
        tabs={{
          trace: { title: "Trace", body: () => <Trace thread={thread} run={run} /> },
          events: { title: "Events", body: () => <RawEvents thread={thread} run={run} /> },
        }}
      />
    </div>
  </main>
);
