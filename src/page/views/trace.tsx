// The trace of a run: its spans as bars on one time axis, and the details of the selected span.

import { useRef, useState } from "preact/hooks";
import { Empty, Plain, Problem } from "../components.tsx";
import { errorText } from "../error-text.ts";
import { duration, money, number, percent } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import {
  cellOf,
  extentOf,
  hasFailed,
  type Row,
  rowsOf,
  type Sums,
  spanOf,
  sumsOf,
  ticksOf,
  titleOf,
} from "../spans.ts";
import { t } from "../texts.ts";
import { SpanDetails } from "./span-details.tsx";
import { type TraceSource, useTrace } from "./use-trace.ts";

/** The maximum depth of indentation. */
const DEEPEST = 10;
/** The number of errors to list above the spans. */
const ERRORS = 5;
/** A selection that matches no span. */
const NONE = "";

export interface TraceProps extends Omit<TraceSource, "run"> {
  readonly run: string | undefined;
  /** True next to a conversation, where it links to the full-width view. */
  readonly isBeside?: boolean;
  /** The message or call whose span is selected first. */
  readonly span?: string | undefined;
}

/** Used in the side panel and in the full-width view. The layout adapts to the available width. */
export const Trace = ({ run, isBeside = false, ...rest }: TraceProps) =>
  run === undefined ? (
    <Empty>{t().trace.none}</Empty>
  ) : (
    <RunTrace key={`${rest.thread} ${run}`} {...{ run, isBeside }} {...rest} />
  );

function RunTrace({
  isBeside,
  span: wanted,
  ...props
}: TraceSource & { isBeside: boolean; span?: string | undefined }) {
  const { trace, now, problem } = useTrace(props);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [text, setText] = useState("");
  const [failedOnly, setFailedOnly] = useState(false);
  /** The span in the URL is selected until the user selects another one, or none. */
  const [chosen, setSelected] = useState<string>();

  const words = t().trace;
  if (!trace) return problem ? <Problem>{problem}</Problem> : <Empty>{t().shared.reading}</Empty>;
  const { spans, is_whole } = trace;
  if (spans.length === 0) return <Empty>{words.empty}</Empty>;
  const extent = extentOf(spans, now);
  const rows = rowsOf(spans, { closed, text, failedOnly }, extent);
  const failed = spans.filter(hasFailed);
  const selected = chosen ?? (wanted === undefined ? undefined : spanOf(spans, wanted)?.id);
  const span = spans.find(({ id }) => id === selected);
  const toggle = (id: string) => setClosed((before) => toggled(before, id));

  return (
    <div class="trace">
      <div class="trace-layout">
        <div>
          <Summary sums={sumsOf(spans)} ms={extent.end - extent.start} />
          <Problem>{problem}</Problem>
          {failed.length > 0 && (
            <ul class="trace-errors" aria-label={words.errors}>
              {failed.slice(0, ERRORS).map((each) => (
                <li key={each.id}>
                  <button type="button" class="quiet" onClick={() => setSelected(each.id)}>
                    ✗ <Plain>{titleOf(each)}</Plain>:{" "}
                    <Plain>{each.error ? errorText(each.error) : (each.status ?? "")}</Plain>
                  </button>
                </li>
              ))}
            </ul>
          )}
          <div class="trace-tools">
            <input
              type="search"
              aria-label={words.search}
              placeholder={words.search}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            {failed.length > 0 && (
              <button type="button" aria-pressed={failedOnly} onClick={() => setFailedOnly(!failedOnly)}>
                {words.errorCount(number(failed.length))}
              </button>
            )}
            {isBeside && (
              <a
                class="button"
                href={hashOf({ view: "thread", thread: props.thread, run: props.run, tab: "trace" })}
              >
                {words.enlarge}
              </a>
            )}
          </div>
          {rows.length === 0 ? (
            <Empty>{words.noMatch}</Empty>
          ) : (
            <Waterfall
              rows={rows}
              ms={extent.end - extent.start}
              selected={selected}
              onSelect={(id) => setSelected(id === selected ? NONE : id)}
              onToggle={toggle}
            />
          )}
          {!is_whole && <Empty>{words.first(number(spans.length))}</Empty>}
        </div>
        {span && (
          <SpanDetails
            {...{ span, thread: props.thread, run: props.run, began: extent.start }}
            cell={cellOf(spans, span)}
            onClose={() => setSelected(NONE)}
          />
        )}
      </div>
    </div>
  );
}

function toggled(all: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(all);
  if (!next.delete(id)) next.add(id);
  return next;
}

function Summary({ sums, ms }: { sums: Sums; ms: number }) {
  const { calls, tools, input, cached, output, cost } = sums;
  const words = t().trace;
  return (
    <dl class="sums">
      <Fact name={words.time}>{duration(ms)}</Fact>
      <Fact name={words.calls}>{number(calls)}</Fact>
      <Fact name={words.toolCalls}>{number(tools)}</Fact>
      <Fact name={words.tokensIn}>{number(input)}</Fact>
      <Fact name={words.cached}>{input > 0 ? percent(cached / input) : "–"}</Fact>
      <Fact name={words.tokensOut}>{number(output)}</Fact>
      {cost !== undefined && <Fact name={words.cost}>{money(cost)}</Fact>}
    </dl>
  );
}

const Fact = ({ name, children }: { name: string; children: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

interface WaterfallProps {
  rows: readonly Row[];
  ms: number;
  selected: string | undefined;
  onSelect: (id: string) => void;
  onToggle: (id: string) => void;
}

/** The arrow keys move between the rows, and open and close them. */
function Waterfall({ rows, ms, selected, onSelect, onToggle }: WaterfallProps) {
  const list = useRef<HTMLUListElement>(null);
  const ticks = ticksOf(ms);
  const words = t().trace;
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>("button.span") ?? [])];
    const at = buttons.indexOf(event.target as HTMLElement);
    const row = rows[at];
    if (!row) return;
    if (event.key === "ArrowDown") buttons[at + 1]?.focus();
    else if (event.key === "ArrowUp") buttons[at - 1]?.focus();
    else if (event.key === (row.isOpen ? "ArrowLeft" : "ArrowRight") && row.within > 0) onToggle(row.span.id);
    else return;
    event.preventDefault();
  };
  return (
    <div class="waterfall">
      <div class="span-row axis" aria-hidden="true">
        <span />
        <svg width="100%" height="16" aria-hidden="true">
          {ticks.map((tick) => (
            <text key={tick} x={`${(tick / ms) * 100}%`} y="12" text-anchor="middle">
              {duration(tick)}
            </text>
          ))}
        </svg>
        <span>{words.time}</span>
        <span>{words.inOut}</span>
        <span>{words.cached}</span>
        <span>{words.cost}</span>
      </div>
      <ul ref={list} aria-label={words.spans} onKeyDown={onKeyDown}>
        {rows.map((row) => (
          <SpanRow
            key={row.span.id}
            row={row}
            ms={ms}
            ticks={ticks}
            isSelected={row.span.id === selected}
            onSelect={onSelect}
            onToggle={onToggle}
          />
        ))}
      </ul>
    </div>
  );
}

const MARKS = { run: "▶", "llm.call": "✦", "tool.call": "⚙", subagent: "⇣" } as const;

interface SpanRowProps extends Pick<WaterfallProps, "ms" | "onSelect" | "onToggle"> {
  row: Row;
  ticks: readonly number[];
  isSelected: boolean;
}

function SpanRow({ row, ms, ticks, isSelected, onSelect, onToggle }: SpanRowProps) {
  const { span, depth, within, isOpen } = row;
  const words = t().trace;
  return (
    <li>
      <div class={isSelected ? "span-row selected" : "span-row"}>
        <div class="span-name" style={{ paddingInlineStart: `${Math.min(depth, DEEPEST) * 0.75}rem` }}>
          {within > 0 ? (
            <button
              type="button"
              class="quiet span-toggle"
              aria-expanded={isOpen}
              aria-label={words.within(number(within), titleOf(span))}
              onClick={() => onToggle(span.id)}
            >
              {isOpen ? "▾" : "▸"}
            </button>
          ) : (
            <span class="span-toggle" />
          )}
          <button
            type="button"
            class="quiet span"
            aria-pressed={isSelected}
            aria-label={labelOf(row)}
            onClick={() => onSelect(span.id)}
          >
            <span class={`span-kind ${kindClass(row)}`} title={words.kinds[span.name]} aria-hidden="true">
              {hasFailed(span) ? "✗" : MARKS[span.name]}
            </span>
            <Plain>{titleOf(span)}</Plain>
          </button>
        </div>
        <Bar row={row} ms={ms} ticks={ticks} />
        <span class="span-cell">{span.duration_ms === undefined ? "…" : duration(span.duration_ms)}</span>
        <Tokens span={span} />
        <span class="span-cell">{span.cost === undefined ? "" : money(span.cost)}</span>
      </div>
    </li>
  );
}

const kindClass = ({ span }: Row) => (hasFailed(span) ? "failed" : span.name.replace(".", "-"));

function labelOf({ span }: Row): string {
  const words = t().trace;
  const took = span.duration_ms === undefined ? words.inProgress : duration(span.duration_ms);
  return [words.kinds[span.name], titleOf(span), took, ...(hasFailed(span) ? [words.failed] : [])].join(", ");
}

/** Draws the time before the first token of a model call in a lighter color. */
function Bar({ row, ms, ticks }: { row: Row; ms: number; ticks: readonly number[] }) {
  const { span, start, duration: long } = row;
  const part = (value: number) => `${ms > 0 ? Math.min(100, (value / ms) * 100) : 100}%`;
  const first = span.first_token_ms;
  return (
    <svg class={`span-bar ${kindClass(row)}`} width="100%" height="20" aria-hidden="true">
      {ticks.map((tick) => (
        <line key={tick} x1={part(tick)} x2={part(tick)} y1="0" y2="20" />
      ))}
      <rect class="least" x={part(start)} y="4" width="2" height="12" />
      <rect x={part(start)} y="4" width={part(long)} height="12" rx="2" />
      {first !== undefined && (
        <rect class="waiting" x={part(start)} y="4" width={part(Math.min(first, long))} height="12" rx="2" />
      )}
    </svg>
  );
}

function Tokens({ span: { name, usage } }: Pick<Row, "span">) {
  if (!usage || name !== "llm.call")
    return (
      <>
        <span class="span-cell" />
        <span class="span-cell" />
      </>
    );
  return (
    <>
      <span class="span-cell">
        {number(usage.input_tokens)} → {number(usage.output_tokens)}
      </span>
      <span class="span-cell">
        {usage.input_tokens > 0 ? percent(usage.cache_read_tokens / usage.input_tokens) : "–"}
      </span>
    </>
  );
}
