// One span of a trace: its times, tokens, arguments, output and error.

import type { ComponentChildren } from "preact";
import type { Span } from "../../client/client.ts";
import { Copy, Plain, Problem } from "../components.tsx";
import { duration, money, number, percent } from "../numbers.ts";
import { cacheRatio, titleOf } from "../spans.ts";
import { Sent } from "./sent-request.tsx";

export interface SpanDetailsProps {
  span: Span;
  thread: string;
  run: string;
  /** When the trace begins, in ms since 1970. */
  began: number;
  onClose: () => void;
}

export function SpanDetails({ span, thread, run, began, onClose }: SpanDetailsProps) {
  const { error, args, output } = span;
  return (
    <section class="span-details" aria-label={`Details of ${titleOf(span)}`}>
      <header>
        <h2>
          <Plain>{titleOf(span)}</Plain>
        </h2>
        <button type="button" class="quiet" aria-label="Close the details" onClick={onClose}>
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
          <Plain>{error.message ?? ""}</Plain>
        </Problem>
      )}
      <Facts span={span} began={began} />
      {args !== undefined && <Text title="Arguments" text={indented(args)} />}
      {output !== undefined && <Text title="Output" text={output} />}
      {span.number !== undefined && <Sent key={span.id} thread={thread} run={run} call={span.number} />}
    </section>
  );
}

function Facts({ span, began }: { span: Span; began: number }) {
  const { duration_ms, first_token_ms, usage, cost } = span;
  const cached = usage && cacheRatio(usage);
  return (
    <dl class="span-facts">
      <Fact name="Started after">{duration(Date.parse(span.started_at) - began)}</Fact>
      <Fact name="Took">{duration_ms === undefined ? "in progress" : duration(duration_ms)}</Fact>
      <Fact name="First token after">{first_token_ms !== undefined && duration(first_token_ms)}</Fact>
      <Fact name="Status">{span.status && <Plain>{span.status}</Plain>}</Fact>
      <Fact name="Stop reason">{span.stop_reason && <Plain>{span.stop_reason}</Plain>}</Fact>
      <Fact name="Agent">{span.name === "run" && span.agent && <Plain>{span.agent}</Plain>}</Fact>
      <Fact name="Model">{span.name === "run" && span.model && <Plain>{span.model}</Plain>}</Fact>
      <Fact name="Messages sent">{span.message_count !== undefined && number(span.message_count)}</Fact>
      <Fact name="Tokens in">{usage && number(usage.input_tokens)}</Fact>
      <Fact name="Read from cache">
        {usage &&
          `${number(usage.cache_read_tokens)}${cached === undefined ? "" : ` (${percent(cached)} of the input)`}`}
      </Fact>
      <Fact name="Written to cache">{usage && number(usage.cache_write_tokens)}</Fact>
      <Fact name="Tokens out">{usage && number(usage.output_tokens)}</Fact>
      <Fact name="Cost">{cost !== undefined && money(cost)}</Fact>
      <Fact name="Tools called">{span.tool_names && <Plain>{span.tool_names.join(", ")}</Plain>}</Fact>
      <Fact name="Call">{span.call_id && <Plain>{span.call_id}</Plain>}</Fact>
    </dl>
  );
}

/** Absent without a value. */
const Fact = ({ name, children }: { name: string; children: ComponentChildren }) =>
  children === undefined || children === false || children === "" ? null : (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );

/** A trace has the beginning of long texts. */
const CUT = 500;

const Text = ({ title, text }: { title: string; text: string }) => (
  <>
    <h3>
      {title}
      {text.length >= CUT && <small> the beginning; the events have all of it</small>}
      <Copy text={() => text} />
    </h3>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard. */}
    <pre tabIndex={0}>
      <Plain>{text}</Plain>
    </pre>
  </>
);

/** JSON that was cut is shown as it is. */
function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
