// Loads the request of one model call on demand. A server records requests only if its operator has enabled that.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ProblemError, type SentRequest } from "../../client/client.ts";
import { Action, Copy, Empty, Plain } from "../components.tsx";
import { number } from "../numbers.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";

export interface SentProps {
  thread: string;
  run: string;
  /** The number of this call among the run's own model calls. */
  call: number;
}

export function Sent({ thread, run, call }: SentProps) {
  const [sent, setSent] = useState<SentRequest | "not_recorded">();
  const read = async () => {
    try {
      setSent(await client.runs.request(thread, run, call));
    } catch (error) {
      if (!(error instanceof ProblemError && error.code === "not_recorded")) throw error;
      setSent("not_recorded");
    }
  };
  if (sent === undefined) return <Action onClick={read}>{t().sent.title}</Action>;
  if (sent === "not_recorded")
    return (
      <Empty>
        {t().sent.notKept} <code>{"traces: { requests: true }"}</code>
      </Empty>
    );
  return <Request sent={sent} />;
}

function Request({ sent }: { sent: SentRequest }) {
  const { system, tools, messages, is_whole } = sent;
  const words = t().sent;
  return (
    <section class="sent" aria-label={words.title}>
      <h3>
        {words.title}
        <Copy text={() => JSON.stringify(sent, null, 2)} label={words.copy} />
      </h3>
      {!is_whole && <Empty>{words.cut}</Empty>}
      <Group title={words.settings(sent.model)}>
        <Json value={{ ...sent.settings, output_limit: sent.output_limit }} />
      </Group>
      <Group title={words.system(number(system.length))}>
        {system.map(({ id, cache, text }) => (
          <Piece key={id} name={id} note={cache}>
            {text}
          </Piece>
        ))}
      </Group>
      <Group title={words.tools(number(tools.length))}>
        {tools.map(({ name, description, parameters }) => (
          <Piece key={name} name={name}>
            {description === undefined
              ? undefined
              : `${description}\n\n${JSON.stringify(parameters ?? {}, null, 2)}`}
          </Piece>
        ))}
      </Group>
      <Group title={words.messages(number(messages.length))}>
        {messages.map(({ id, role, in_thread, message }) =>
          in_thread ? (
            <p key={id} class="empty">
              {role} <Plain>{id}</Plain>, {words.inThread}
            </p>
          ) : (
            <Piece key={id} name={`${role} ${id}`} note={words.changed}>
              {message && JSON.stringify(message, null, 2)}
            </Piece>
          ),
        )}
      </Group>
    </section>
  );
}

const Group = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <details>
    <summary>
      <Plain>{title}</Plain>
    </summary>
    {children}
  </details>
);

/** If there is no text, the part was omitted from the record. */
const Piece = (props: { name: string; note?: string; children: string | undefined }) => (
  <details class="piece">
    <summary>
      <code>
        <Plain>{props.name}</Plain>
      </code>{" "}
      {props.note && <small>{props.note}</small>}
    </summary>
    {props.children === undefined ? <Empty>{t().sent.leftOut}</Empty> : <Text>{props.children}</Text>}
  </details>
);

const Json = ({ value }: { value: unknown }) => <Text>{JSON.stringify(value, null, 2)}</Text>;

const Text = ({ children }: { children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll this text.
  <pre tabIndex={0}>
    <Plain>{children}</Plain>
  </pre>
);
