// Two runs side by side, even while they are in progress: their messages, calls and usage.

import { useEffect, useState } from "preact/hooks";
import type { ThreadView } from "../../client/cells.ts";
import type { RunNow } from "../../client/client.ts";
import { createFold } from "../../client/fold.ts";
import { Empty, Plain, Problem } from "../components.tsx";
import { touch, useTouched } from "../frame.ts";
import { duration, money, number } from "../numbers.ts";
import { hashOf, type RunPlace } from "../routes.ts";
import { client, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { Cells } from "./cells.tsx";
import { PageView } from "./page-view.tsx";
import { ThreadOf } from "./thread-of.ts";

export const Compare = ({ runs }: { runs: readonly [RunPlace, RunPlace] }) => (
  <PageView title={t().compare.title}>
    <div class="compare">
      {runs.map((place, index) => (
        <Side key={place.run} place={place} name={t().compare.names[index] ?? ""} />
      ))}
    </div>
  </PageView>
);

interface SideContent {
  readonly page: ThreadView;
  /** The run's record when it was last read. */
  record?: RunNow;
  /** True if the first events have expired. */
  isCut: boolean;
  problem?: string;
}

function Side({ place, name }: { place: RunPlace; name: string }) {
  const { page, record, isCut, problem } = useTouched(useFollowed(place));
  const words = t().compare;
  const { thread, run } = place;
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      {record && <Figures record={record} page={page} />}
      <p class="row">
        <a href={hashOf({ view: "thread", thread })}>{words.conversation}</a>
        <a href={hashOf({ view: "thread", thread, run, tab: "trace" })}>{words.trace}</a>
      </p>
      <Problem>{problem}</Problem>
      {isCut && <Empty>{words.gone}</Empty>}
      <div class="messages">
        <ThreadOf.Provider value={{ thread, agent: record?.agent ?? words.agent }}>
          <Cells lane={page.lane} />
        </ThreadOf.Provider>
      </div>
    </section>
  );
}

function Figures({ record, page }: { record: RunNow; page: ThreadView }) {
  const words = t().compare;
  const { model } = useTouched(page.run);
  const { usage, created_at, ended_at } = record;
  const facts: readonly (readonly [string, string])[] = [
    [words.agent, record.agent],
    [words.model, model ?? "–"],
    [words.took, ended_at ? duration(Date.parse(ended_at) - Date.parse(created_at)) : words.working],
    [words.tokens, `${number(usage.input_tokens)} + ${number(usage.output_tokens)}`],
    [words.cost, usage.cost === undefined ? "–" : money(usage.cost)],
  ];
  return (
    <dl class="sums">
      {facts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Plain>{text}</Plain>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Reads the run from its first event and follows it while it is in progress. */
function useFollowed({ thread, run }: RunPlace): SideContent {
  const [{ followed, apply }] = useState(() => {
    const fold = createFold({ touch });
    const made: SideContent = { page: fold.page, isCut: false };
    return { followed: made, apply: fold.apply };
  });
  useEffect(() => {
    const ending = new AbortController();
    const onReset = () => {
      followed.isCut = true;
    };
    const read = async () => {
      followed.record = await client.runs.get(thread, run, ending.signal);
      touch(followed);
    };
    const follow = async () => {
      try {
        await read();
        for await (const event of client.runs.events(thread, run, { onReset }, ending.signal)) apply(event);
        await read();
      } catch (error) {
        if (ending.signal.aborted) return;
        followed.problem = messageOf(error);
        touch(followed);
      }
    };
    void follow();
    return () => ending.abort();
  }, [followed, apply, thread, run]);
  return followed;
}
