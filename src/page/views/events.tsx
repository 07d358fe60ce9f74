// The events of a run as the server sends them, for front-end developers.

import { useEffect, useState } from "preact/hooks";
import type { StreamEvent } from "../../client/client.ts";
import { Copy, Empty, Plain, Problem } from "../components.tsx";
import { type EventEntry, type EventLog, logEvent, MOST_EVENTS, newEventLog } from "../event-log.ts";
import { touch, useTouched } from "../frame.ts";
import { number } from "../numbers.ts";
import { client, messageOf } from "../session.ts";
import { t } from "../texts.ts";

/** The number of rows to add at a time. */
const ROWS = 200;
const PREVIEW = 160;

export const RawEvents = ({ thread, run }: { thread: string; run: string | undefined }) =>
  run === undefined ? (
    <Empty>{t().events.none}</Empty>
  ) : (
    <RunEvents key={`${thread} ${run}`} thread={thread} run={run} />
  );

function RunEvents({ thread, run }: { thread: string; run: string }) {
  const log = useTouched(useLog(thread, run));
  const [names, setNames] = useState<ReadonlySet<string>>(new Set());
  const [most, setMost] = useState(ROWS);
  const chosen = names.size === 0 ? log.seen : log.seen.filter(({ event }) => names.has(event.event));
  const toggle = (name: string) => {
    const next = new Set(names);
    if (!next.delete(name)) next.add(name);
    setNames(next);
    setMost(ROWS);
  };
  const words = t().events;
  const copied = () => chosen.map(({ event }) => JSON.stringify(event)).join("\n");

  return (
    <div class="events">
      <fieldset class="chips">
        <legend>{words.filter(number(log.total))}</legend>
        {[...log.counts].map(([name, count]) => (
          <button type="button" key={name} aria-pressed={names.has(name)} onClick={() => toggle(name)}>
            <Plain>{name}</Plain> <small>{number(count)}</small>
          </button>
        ))}
      </fieldset>
      <Problem>{log.problem}</Problem>
      {log.isCut && <Empty>{words.cut}</Empty>}
      {log.seen.length === 0 && !log.problem && (
        <Empty>{log.state === "reading" ? words.soon : words.gone}</Empty>
      )}
      {chosen.length > 0 && (
        <p>
          <Copy text={copied} label={words.copy(number(chosen.length))} />
        </p>
      )}
      <ol>
        {chosen.slice(0, most).map(({ id, event }) => (
          <EventRow key={id} id={id} event={event} />
        ))}
      </ol>
      {chosen.length > most && (
        <button type="button" onClick={() => setMost(most + ROWS)}>
          {words.more(number(Math.min(ROWS, chosen.length - most)), number(chosen.length - most))}
        </button>
      )}
      {log.total > log.seen.length && <Empty>{words.most(number(MOST_EVENTS))}</Empty>}
    </div>
  );
}

/** Reads the events from the first one and follows them while the run is in progress. */
function useLog(thread: string, run: string): EventLog {
  const [log] = useState(newEventLog);
  useEffect(() => {
    const ending = new AbortController();
    void read(log, { thread, run }, ending.signal);
    return () => ending.abort();
  }, [log, thread, run]);
  return log;
}

async function read(
  log: EventLog,
  { thread, run }: { thread: string; run: string },
  signal: AbortSignal,
): Promise<void> {
  let cursor = "";
  const options = {
    onCursor: (id: string) => {
      cursor = id;
    },
    onReset: () => {
      log.isCut = true;
    },
  };
  try {
    for await (const event of client.runs.events(thread, run, options, signal)) {
      logEvent(log, { id: cursor, event });
      touch(log);
    }
    log.state = "ended";
  } catch (error) {
    if (!signal.aborted) log.problem = messageOf(error);
  }
  touch(log);
}

function EventRow({ id, event }: EventEntry) {
  const [isOpen, setOpen] = useState(false);
  const path = "path" in event && event.path ? event.path.join(" › ") : "";
  return (
    <li>
      <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
        <summary>
          <code class="event-id">{id.slice(id.indexOf(":") + 1)}</code>
          <code class="event-name">{event.event}</code>
          {path && (
            <code class="event-path">
              <Plain>{path}</Plain>
            </code>
          )}
          <code class="event-data">
            <Plain>{previewOf(event)}</Plain>
          </code>
        </summary>
        {isOpen && <EventJson event={event} />}
      </details>
    </li>
  );
}

const previewOf = ({ data }: StreamEvent) => JSON.stringify(data).slice(0, PREVIEW);

function EventJson({ event }: { event: StreamEvent }) {
  const json = JSON.stringify(event, null, 2);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll this text. */}
      <pre tabIndex={0}>
        <Plain>{json}</Plain>
      </pre>
      <Copy text={() => JSON.stringify(event)} />
    </>
  );
}
