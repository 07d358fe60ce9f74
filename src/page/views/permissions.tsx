// The stored permission rules of an agent or a thread: which calls run, require approval, or are refused.

import { useState } from "preact/hooks";
import type { RememberedRule } from "../../client/client.ts";
import { Empty, Plain, Problem, useRead, visible } from "../components.tsx";
import { type Field, isObject } from "../form.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { FieldsForm } from "./fields.tsx";

/** The scope of the rules: the user's rules for all threads with an agent, or the rules of one thread. */
export type RuleScope = { readonly agent: string } | { readonly thread: string };

export function Permissions(place: RuleScope) {
  const key = "agent" in place ? `agent ${place.agent}` : `thread ${place.thread}`;
  const rules = useRead(
    (signal) =>
      "agent" in place
        ? client.permissions.ofAgent(place.agent, signal)
        : client.permissions.ofThread(place.thread, signal),
    [key],
  );
  const remove = async (id: string) => {
    if ("agent" in place) await client.permissions.removeFromAgent(place.agent, id);
    else await client.permissions.removeFromThread(place.thread, id);
    rules.reload();
  };
  const words = t().permissions;
  return (
    <section aria-label={words.title}>
      <h2>{"agent" in place ? words.ofAgent : words.ofThread}</h2>
      <Problem>{rules.problem}</Problem>
      {rules.value?.length === 0 && <Empty>{words.none}</Empty>}
      <ul class="rules">
        {rules.value?.map((rule) => (
          <li key={rule.id}>
            <Rule rule={rule} />
            {may("run") && (
              <Confirm
                class="quiet"
                verb={words.remove}
                label={words.removeOf(rule.id)}
                question={words.removeQuestion}
                onConfirm={() => remove(rule.id)}
              >
                ✕
              </Confirm>
            )}
          </li>
        ))}
      </ul>
      {may("run") && <NewRule place={place} onAdded={rules.reload} />}
    </section>
  );
}

const MARKS = { allow: "✓", deny: "✗", ask: "?" } as const;

function Rule({ rule }: { rule: RememberedRule }) {
  const { tool, ...others } = rule.matcher;
  const { decisions, anyTool } = t().permissions;
  const description = ownWordsOf(rule);
  return (
    <span class="rule">
      <strong class={rule.decision}>{`${MARKS[rule.decision]} ${decisions[rule.decision]}`}</strong>{" "}
      <Plain>{typeof tool === "string" ? tool : anyTool}</Plain>
      {Object.entries(others).map(([name, value]) => (
        <span key={name} class="condition">
          {" "}
          <span class="quiet">
            <Plain>{name.replaceAll("_", " ")}</Plain>
          </span>{" "}
          <code>
            <Plain>{saidOf(value)}</Plain>
          </code>
        </span>
      ))}
      {description !== undefined && (
        <span class="quiet">
          {" "}
          <Plain>{description}</Plain>
        </span>
      )}
    </span>
  );
}

/** Returns undefined for a description that only repeats the rule's matcher, as with a rule about a single call. */
function ownWordsOf({ description, matcher }: RememberedRule): string | undefined {
  const said = `${String(matcher.tool)} ${JSON.stringify(matcher.arguments)}`;
  return description && !said.startsWith(description) ? description : undefined;
}

function saidOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(", ");
  return isObject(value) ? JSON.stringify(value) : String(value);
}

function ruleFields(): Field[] {
  const { decisions, fields } = t().permissions;
  const choices = new Map((["allow", "ask", "deny"] as const).map((each) => [decisions[each], each]));
  return [
    { name: "decision", kind: "choice", required: true, choices },
    { name: "tool", kind: "text", required: true, description: fields.tool },
    { name: "command_prefix", kind: "list", required: false, description: fields.command_prefix },
    { name: "regex", kind: "text", required: false, description: fields.regex },
    { name: "arguments", kind: "json", required: false, description: fields.arguments },
    { name: "message", kind: "text", required: false, description: fields.message },
  ];
}

function NewRule({ place, onAdded }: { place: RuleScope; onAdded: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const add = async ({ decision, tool, ...conditions }: Record<string, unknown>) => {
    // The server validates every field.
    const rule = { [String(decision)]: tool, ...conditions };
    if ("agent" in place) await client.permissions.addToAgent(place.agent, rule);
    else await client.permissions.addToThread(place.thread, rule);
    setOpen(false);
    onAdded();
  };
  const words = t().permissions;
  if (!isOpen)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        + {words.add}
      </button>
    );
  return (
    <FieldsForm
      fields={ruleFields()}
      values={{ decision: "allow" }}
      submit={"agent" in place ? words.addToAgent(visible(place.agent)) : words.addToThread}
      onSubmit={add}
      more={
        <button type="button" onClick={() => setOpen(false)}>
          {t().shared.cancel}
        </button>
      }
    />
  );
}
