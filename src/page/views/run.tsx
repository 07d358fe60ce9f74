// Shows a run across the full width of the page, either as a trace or as a list of events.

import { useState } from "preact/hooks";
import { visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { Menu } from "../menu.tsx";
import { go, hashOf } from "../routes.ts";
import { may } from "../session.ts";
import { Tabs } from "../tabs.tsx";
import { t } from "../texts.ts";
import { threads } from "../threads.ts";
import { RawEvents } from "./events.tsx";
import { RunAgain } from "./run-again.tsx";
import { Trace } from "./trace.tsx";

export interface RunProps {
  readonly thread: string;
  readonly run: string;
  readonly tab: string;
  /** The message or call whose span is selected. */
  readonly span?: string | undefined;
}

export function Run({ thread, run, tab, span }: RunProps) {
  const [isAsked, setAsked] = useState(false);
  const words = t().run;
  const title = useTouched(threads).items.find(({ id }) => id === thread)?.title;
  return (
    <main class="page-view" aria-label={words.title}>
      <header class="head">
        <Menu />
        <h1>{title ? visible(title) : words.title}</h1>
        <code class="run-id">{visible(run)}</code>
        <div class="row">
          {may("run") && (
            <button type="button" onClick={() => setAsked(true)}>
              {words.again}
            </button>
          )}
          <a class="button" href={hashOf({ view: "thread", thread })}>
            {words.conversation}
          </a>
        </div>
      </header>
      <div class="body">
        <Tabs
          label={words.title}
          current={tab}
          onChange={(name) => go({ view: "thread", thread, run, tab: name })}
          tabs={{
            trace: { title: words.trace, body: () => <Trace thread={thread} run={run} span={span} /> },
            events: { title: words.events, body: () => <RawEvents thread={thread} run={run} /> },
          }}
        />
      </div>
      {isAsked && <RunAgain thread={thread} run={run} onClose={() => setAsked(false)} />}
    </main>
  );
}
