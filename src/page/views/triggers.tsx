// The user's triggers: their URLs, the results of their deliveries, and the available actions.

import { useState } from "preact/hooks";
import type { Trigger, TriggerDelivery } from "../../client/client.ts";
import { Action, Copy, Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { client, may } from "../session.ts";
import { triggerTexts } from "../texts/triggers.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { addressOf } from "./trigger-address.ts";
import { EditTrigger, NewTrigger, specOf } from "./trigger-form.tsx";
import { RotateSecret } from "./trigger-secret.tsx";
import { TryTrigger } from "./trigger-try.tsx";

/** The maximum number of triggers to show. By default, a user cannot have more triggers than that. */
const MOST = 100;

export function Triggers() {
  const { value, problem, reload } = useRead(async (signal) => {
    const [agents, page] = await Promise.all([
      client.agents.list(signal),
      client.triggers.list({ limit: MOST }, signal),
    ]);
    return { agents: agents.map(({ name }) => name), ...page };
  }, []);
  const words = triggerTexts();
  return (
    <div class="sections">
      <section aria-label={words.title}>
        <p class="note">{words.about}</p>
        <Problem>{problem}</Problem>
        {value?.items.length === 0 && <Empty>{words.empty}</Empty>}
        <div class="changes">
          {value?.items.map((trigger) => (
            <OneTrigger key={trigger.id} trigger={trigger} agents={value.agents} onChanged={reload} />
          ))}
        </div>
        {value?.next_cursor && <Empty>{words.more(number(value.items.length))}</Empty>}
        {value && may("run") && (
          <NewTrigger agents={value.agents} ids={value.items.map(({ id }) => id)} onMade={reload} />
        )}
      </section>
    </div>
  );
}

interface OneProps {
  readonly trigger: Trigger;
  readonly agents: readonly string[];
  readonly onChanged: () => void;
}

function OneTrigger({ trigger, agents, onChanged }: OneProps) {
  const { id, paused, paused_reason, has_secret } = trigger;
  const [isOpen, setOpen] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const words = triggerTexts();
  const isPaused = paused || paused_reason !== undefined;
  const state = isPaused ? words.paused : has_secret ? words.on : words.noSecret;
  return (
    <details class="change" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Plain>{id}</Plain> <span class="quiet">{state}</span>
      </summary>
      <TriggerFacts trigger={trigger} />
      {isOpen && <Deliveries id={id} />}
      {may("run") && (
        <>
          <div class="row">
            <PauseOrResume trigger={trigger} isPaused={isPaused} onChanged={onChanged} />
            <button type="button" onClick={() => setEditing(true)}>
              {words.edit}
            </button>
            <RotateSecret trigger={trigger} onChanged={onChanged} />
            <Confirm
              class="danger"
              question={words.deleteQuestion}
              onConfirm={async () => {
                await client.triggers.delete(id);
                onChanged();
              }}
            >
              {t().shared.delete}
            </Confirm>
          </div>
          <TryTrigger id={id} />
        </>
      )}
      {isEditing && (
        <EditTrigger
          trigger={trigger}
          agents={agents}
          onEnd={(isChanged) => {
            setEditing(false);
            if (isChanged) onChanged();
          }}
        />
      )}
    </details>
  );
}

/** Sending a trigger again resumes it, even if the server has paused it. */
function PauseOrResume(props: { trigger: Trigger; isPaused: boolean; onChanged: () => void }) {
  const { trigger, isPaused, onChanged } = props;
  const words = triggerTexts();
  return (
    <Action
      onClick={async () => {
        await client.triggers.put(trigger.id, { ...specOf(trigger), paused: !isPaused });
        onChanged();
      }}
    >
      {isPaused ? words.resume : words.pause}
    </Action>
  );
}

function TriggerFacts({ trigger }: { trigger: Trigger }) {
  const { url, agent, verify, input, thread, filter, has_secret, old_secret_until, paused_reason } = trigger;
  const words = triggerTexts();
  return (
    <dl class="facts">
      {paused_reason && (
        <>
          <dt>{words.why}</dt>
          <dd>
            {visible(paused_reason.message)} <Time at={paused_reason.at} />
          </dd>
        </>
      )}
      <dt>{words.address}</dt>
      <dd>
        <code>{visible(addressOf(url))}</code> <Copy text={() => addressOf(url)} label={words.copyAddress} />
      </dd>
      <dt>{words.sender}</dt>
      <dd>{words.schemes[verify.scheme]}</dd>
      {!has_secret && (
        <>
          <dt>{words.secret}</dt>
          <dd>{words.secretMissing}</dd>
        </>
      )}
      {old_secret_until && (
        <>
          <dt>{words.oldSecret}</dt>
          <dd>
            <Time at={old_secret_until} />
          </dd>
        </>
      )}
      <dt>{words.agent}</dt>
      <dd>
        <Plain>{agent}</Plain>
      </dd>
      <dt>{words.message}</dt>
      <dd class="as-written">
        <Plain>{input}</Plain>
      </dd>
      <dt>{words.thread}</dt>
      <dd>
        <Plain>{thread}</Plain>
      </dd>
      {Object.keys(filter).length > 0 && (
        <>
          <dt>{words.filter}</dt>
          <dd>
            <Plain>{JSON.stringify(filter)}</Plain>
          </dd>
        </>
      )}
    </dl>
  );
}

/** The last 20 deliveries. The server does not store older deliveries. */
function Deliveries({ id }: { id: string }) {
  const { value, problem, reload } = useRead((signal) => client.triggers.get(id, signal), [id]);
  const words = triggerTexts();
  return (
    <section aria-label={words.deliveries}>
      <Problem>{problem}</Problem>
      {value?.deliveries.length === 0 && <Empty>{words.noDeliveries}</Empty>}
      {value && value.deliveries.length > 0 && (
        <table class="runs" aria-label={words.deliveries}>
          <thead>
            <tr>
              <th>{words.at}</th>
              <th>{words.outcome}</th>
              <th>{words.delivery}</th>
            </tr>
          </thead>
          <tbody>
            {value.deliveries.map((delivery) => (
              <DeliveryRow key={`${delivery.at} ${delivery.id}`} {...delivery} />
            ))}
          </tbody>
        </table>
      )}
      <button type="button" onClick={reload}>
        {words.refresh}
      </button>
    </section>
  );
}

function DeliveryRow({ at, id, outcome, reason, thread_id }: TriggerDelivery) {
  const words = triggerTexts();
  return (
    <tr>
      <td>
        <Time at={at} />
      </td>
      <td>
        {words.outcomes[outcome]}
        {reason && `: ${visible(reason)}`}{" "}
        {thread_id && <a href={hashOf({ view: "thread", thread: thread_id })}>{words.openThread}</a>}
      </td>
      <td>{id && <Plain>{id}</Plain>}</td>
    </tr>
  );
}
