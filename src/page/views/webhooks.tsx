// The webhooks of the user or of a tenant: create a webhook, see its deliveries, and send them again.

import { useState } from "preact/hooks";
import type { Webhook, WebhookDelivery } from "../../client/client.ts";
import { Action, Copy, Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { messageOf } from "../session.ts";
import { webhookTexts } from "../texts/webhooks.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { Listing } from "./listing.tsx";
import type { WebhookMethods } from "./webhook-methods.ts";

const EVENTS = ["run.ended", "run.failed", "interrupt.opened", "budget.near", "schedule.paused"] as const;
/** The maximum number of webhooks to show. */
const MOST = 100;
/** The maximum number of deliveries per page. */
const LIMIT = 20;

export function Webhooks({ methods }: { methods: WebhookMethods }) {
  const { value, problem, reload } = useRead((signal) => methods.list({ limit: MOST }, signal), []);
  const words = webhookTexts();
  return (
    <section aria-label={words.title}>
      <h2>{words.title}</h2>
      <p class="note">{words.about}</p>
      <Problem>{problem}</Problem>
      {value?.items.length === 0 && <Empty>{words.empty}</Empty>}
      <div class="changes">
        {value?.items.map((webhook) => (
          <OneWebhook key={webhook.id} webhook={webhook} methods={methods} onChanged={reload} />
        ))}
      </div>
      {methods.mayChange() && <NewWebhook methods={methods} onMade={reload} />}
    </section>
  );
}

interface OneProps {
  readonly webhook: Webhook;
  readonly methods: WebhookMethods;
  readonly onChanged: () => void;
}

function OneWebhook({ webhook, methods, onChanged }: OneProps) {
  const { id, url, on, agents, paused, disabled, failing_since } = webhook;
  const words = webhookTexts();
  const [count, setCount] = useState(0);
  const state = disabled ? words.disabled : paused ? words.paused : failing_since ? words.failing : words.on;
  return (
    <details class="change">
      <summary>
        <Plain>{url}</Plain> <span class="quiet">{state}</span>
      </summary>
      <dl class="facts">
        <dt>{words.events}</dt>
        <dd>{on.join(", ")}</dd>
        {agents && (
          <>
            <dt>{words.agents}</dt>
            <dd>
              <Plain>{agents.join(", ")}</Plain>
            </dd>
          </>
        )}
        {disabled && (
          <>
            <dt>{words.disabled}</dt>
            <dd>{visible(disabled.reason)}</dd>
          </>
        )}
      </dl>
      <Deliveries id={id} methods={methods} of={count} />
      {methods.mayChange() && (
        <div class="row">
          <Try id={id} methods={methods} />
          <Rotate id={id} methods={methods} />
          <button type="button" onClick={() => setCount(count + 1)}>
            {words.refresh}
          </button>
          <Confirm
            class="danger"
            question={words.deleteQuestion}
            onConfirm={async () => {
              await methods.delete(id);
              onChanged();
            }}
          >
            {t().shared.delete}
          </Confirm>
        </div>
      )}
    </details>
  );
}

function Deliveries({ id, methods, of }: { id: string; methods: WebhookMethods; of: number }) {
  const words = webhookTexts();
  return (
    <Listing<WebhookDelivery>
      of={[id, of]}
      read={(cursor, signal) => methods.deliveries(id, { limit: LIMIT, cursor }, signal)}
      keyOf={(each) => each.id}
      empty={words.noDeliveries}
      columns={[
        { name: words.event, cell: ({ type }) => type },
        { name: words.status, cell: ({ status, error }) => <Status status={status} error={error} /> },
        { name: words.created, cell: ({ created_at }) => <Time at={created_at} /> },
        {
          name: words.actions,
          cell: (each, reload) =>
            methods.mayChange() ? (
              <Action
                label={words.sendAgainOf(each.id)}
                onClick={async () => {
                  await methods.send(id, each.id);
                  reload();
                }}
              >
                {words.sendAgain}
              </Action>
            ) : null,
        },
      ]}
    />
  );
}

function Status({ status, error }: Pick<WebhookDelivery, "status" | "error">) {
  const text = webhookTexts().statuses[status];
  return <>{error ? `${text}: ${visible(error)}` : text}</>;
}

function Try({ id, methods }: { id: string; methods: WebhookMethods }) {
  const words = webhookTexts();
  const [said, setSaid] = useState("");
  return (
    <>
      <Action
        onClick={async () => {
          const { delivered, error = "" } = await methods.test(id);
          setSaid(delivered ? words.taken : words.notTaken(visible(error)));
        }}
      >
        {words.try}
      </Action>
      {said && <span role="status">{said}</span>}
    </>
  );
}

function Rotate({ id, methods }: { id: string; methods: WebhookMethods }) {
  const words = webhookTexts();
  const [secret, setSecret] = useState("");
  return (
    <>
      <Action onClick={async () => setSecret((await methods.rotate(id)).secret ?? "")}>{words.rotate}</Action>
      {secret && <ShownOnce secret={secret} />}
    </>
  );
}

function ShownOnce({ secret }: { secret: string }) {
  return (
    <p role="status" class="row">
      <span>{webhookTexts().shownOnce}</span> <code>{secret}</code> <Copy text={() => secret} />
    </p>
  );
}

function NewWebhook({ methods, onMade }: { methods: WebhookMethods; onMade: () => void }) {
  const words = webhookTexts();
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<readonly (typeof EVENTS)[number][]>(["run.ended", "run.failed"]);
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState("");
  const make = async (event: Event) => {
    event.preventDefault();
    setSecret("");
    setProblem("");
    try {
      setSecret((await methods.create({ url: url.trim(), on: [...events] })).secret ?? "");
      setUrl("");
      onMade();
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <form class="filters" onSubmit={make}>
      <label>
        {words.address}
        <input type="url" value={url} required onInput={(event) => setUrl(event.currentTarget.value)} />
      </label>
      <fieldset class="row">
        <legend class="unseen">{words.events}</legend>
        {EVENTS.map((each) => (
          <label key={each} class="check">
            <input
              type="checkbox"
              checked={events.includes(each)}
              onChange={({ currentTarget: { checked } }) =>
                setEvents(EVENTS.filter((event) => (event === each ? checked : events.includes(event))))
              }
            />
            {each}
          </label>
        ))}
      </fieldset>
      <button type="submit" class="primary" disabled={url.trim() === "" || events.length === 0}>
        {words.create}
      </button>
      <Problem>{problem}</Problem>
      {secret && <ShownOnce secret={secret} />}
    </form>
  );
}
