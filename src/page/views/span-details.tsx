// A span of a trace: its times, tokens, arguments, output and error.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Span } from "../../client/client.ts";
import { Copy, Plain, Problem } from "../components.tsx";
import { errorText } from "../error-text.ts";
import { duration, money, number, percent } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { may } from "../session.ts";
import { cacheRatio, titleOf } from "../spans.ts";
import { t } from "../texts.ts";
import { RunAgain } from "./run-again.tsx";
import { Sent } from "./sent-request.tsx";

export interface SpanDetailsProps {
  span: Span;
  thread: string;
  run: string;
  /** The start of the trace, in ms since 1970. */
  began: number;
  /** The id of its message or call in the conversation. */
  cell: string | undefined;
  onClose: () => void;
}

export function SpanDetails({ span, thread, run, began, cell, onClose }: SpanDetailsProps) {
  const { error, args, output } = span;
  const [isAsked, setAsked] = useState(false);
  const isCall = span.name === "tool.call";
  const words = t().span;
  return (
    <section class="span-details" aria-label={words.details(titleOf(span))}>
      <header>
        <h2>
          <Plain>{titleOf(span)}</Plain>
        </h2>
        <button type="button" class="quiet" aria-label={words.close} onClick={onClose}>
          ✕
        </button>
      </header>
      {error && (
        <Problem>
          {error.code && (
            <>
              <code>
                <Plain>{error.code}</Plain>
              </code>{" "}
            </>
          )}
          <Plain>{errorText(error)}</Plain>
        </Problem>
      )}
      <Facts span={span} began={began} />
      {cell !== undefined && (
        <p class="row">
          <a href={hashOf({ view: "thread", thread, message: cell })}>{words.inConversation}</a>
          {may("run") && (
            <button type="button" onClick={() => setAsked(true)}>
              {isCall ? words.againWith : words.again}
            </button>
          )}
        </p>
      )}
      {args !== undefined && <Text title={words.arguments} text={indented(args)} />}
      {output !== undefined && <Text title={words.output} text={output} />}
      {span.number !== undefined && <Sent key={span.id} thread={thread} run={run} call={span.number} />}
      {isAsked && <RunAgain {...{ thread, run, cell }} isOfCall={isCall} onClose={() => setAsked(false)} />}
    </section>
  );
}

function Facts({ span, began }: { span: Span; began: number }) {
  const { duration_ms, first_token_ms, usage, cost } = span;
  const cached = usage && cacheRatio(usage);
  const words = t().span;
  return (
    <dl class="span-facts">
      <Fact name={words.startedAfter}>{duration(Date.parse(span.started_at) - began)}</Fact>
      <Fact name={words.took}>{duration_ms === undefined ? words.inProgress : duration(duration_ms)}</Fact>
      <Fact name={words.firstToken}>{first_token_ms !== undefined && duration(first_token_ms)}</Fact>
      <Fact name={words.status}>{span.status && <Plain>{span.status}</Plain>}</Fact>
      <Fact name={words.stopReason}>{span.stop_reason && <Plain>{span.stop_reason}</Plain>}</Fact>
      <Fact name={words.agent}>{span.name === "run" && span.agent && <Plain>{span.agent}</Plain>}</Fact>
      <Fact name={words.model}>{span.name === "run" && span.model && <Plain>{span.model}</Plain>}</Fact>
      <Fact name={words.messages}>{span.message_count !== undefined && number(span.message_count)}</Fact>
      <Fact name={words.tokensIn}>{usage && number(usage.input_tokens)}</Fact>
      <Fact name={words.cacheRead}>
        {usage &&
          `${number(usage.cache_read_tokens)}${cached === undefined ? "" : ` (${words.ofInput(percent(cached))})`}`}
      </Fact>
      <Fact name={words.cacheWritten}>{usage && number(usage.cache_write_tokens)}</Fact>
      <Fact name={words.tokensOut}>{usage && number(usage.output_tokens)}</Fact>
      <Fact name={words.cost}>{cost !== undefined && money(cost)}</Fact>
      <Fact name={words.tools}>{span.tool_names && <Plain>{span.tool_names.join(", ")}</Plain>}</Fact>
      <Fact name={words.call}>{span.call_id && <Plain>{span.call_id}</Plain>}</Fact>
    </dl>
  );
}

/** Renders nothing if there is no value. */
const Fact = ({ name, children }: { name: string; children: ComponentChildren }) =>
  children === undefined || children === false || children === "" ? null : (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );

/** A trace contains only the first characters of long texts. */
const CUT = 500;

const Text = ({ title, text }: { title: string; text: string }) => (
  <>
    <h3>
      {title}
      {text.length >= CUT && <small> {t().span.cut}</small>}
      <Copy text={() => text} />
    </h3>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll this text. */}
    <pre tabIndex={0}>
      <Plain>{text}</Plain>
    </pre>
  </>
);

/** Truncated JSON is shown unchanged. */
function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
