// The permission rules that are remembered for an agent or for a thread: which calls run, wait for a person, or are refused.

import { useState } from "preact/hooks";
import type { RememberedRule } from "../../client/client.ts";
import { Empty, Plain, Problem, useRead, visible } from "../components.tsx";
import { type Field, isObject } from "../form.ts";
import { client, may } from "../session.ts";
import { Confirm } from "./confirm.tsx";
import { FieldsForm } from "./fields.tsx";

/** Whose rules: this user's with an agent, in all threads, or those of one thread. */
export type Place = { readonly agent: string } | { readonly thread: string };

export function Permissions(place: Place) {
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
  return (
    <section aria-label="Remembered permissions">
      <h2>
        {"agent" in place ? "Remembered for this agent, in all your threads" : "Remembered for this thread"}
      </h2>
      <Problem>{rules.problem}</Problem>
      {rules.value?.length === 0 && (
        <Empty>Answers that you gave with “remember” appear here, and rules that you add.</Empty>
      )}
      <ul class="rules">
        {rules.value?.map((rule) => (
          <li key={rule.id}>
            <Rule rule={rule} />
            {may("run") && (
              <Confirm
                class="quiet"
                verb="Remove"
                label={`Remove the rule ${rule.id}`}
                question="Remove this rule?"
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

const DECISIONS = { allow: "✓ allow", deny: "✗ deny", ask: "? ask" } as const;

function Rule({ rule }: { rule: RememberedRule }) {
  const { tool, ...others } = rule.matcher;
  return (
    <span class="rule">
      <strong class={rule.decision}>{DECISIONS[rule.decision]}</strong>{" "}
      <Plain>{typeof tool === "string" ? tool : "any tool"}</Plain>
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
      {rule.description && (
        <span class="quiet">
          {" "}
          <Plain>{rule.description}</Plain>
        </span>
      )}
    </span>
  );
}

function saidOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(", ");
  return isObject(value) ? JSON.stringify(value) : String(value);
}

const RULE: readonly Field[] = [
  {
    name: "decision",
    kind: "choice",
    required: true,
    choices: new Map(["allow", "ask", "deny"].map((decision) => [decision, decision])),
  },
  { name: "tool", kind: "text", required: true, description: "Its name, or a glob of names such as read_*." },
  {
    name: "command_prefix",
    kind: "list",
    required: false,
    description: "Only commands that begin with one of these, whole words, one a line.",
  },
  {
    name: "regex",
    kind: "text",
    required: false,
    description:
      "RE2, over each command or the arguments as JSON: to allow it must match the whole, otherwise any part.",
  },
  { name: "arguments", kind: "json", required: false, description: "Only exactly these arguments." },
  {
    name: "message",
    kind: "text",
    required: false,
    description: "For the model when it denies, for you when it asks.",
  },
];

function NewRule({ place, onAdded }: { place: Place; onAdded: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const add = async ({ decision, tool, ...conditions }: Record<string, unknown>) => {
    // The server checks every field.
    const rule = { [String(decision)]: tool, ...conditions };
    if ("agent" in place) await client.permissions.addToAgent(place.agent, rule);
    else await client.permissions.addToThread(place.thread, rule);
    setOpen(false);
    onAdded();
  };
  if (!isOpen)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        + Add a rule
      </button>
    );
  const where = "agent" in place ? `for ${visible(place.agent)}` : "for this thread";
  return (
    <FieldsForm
      fields={RULE}
      values={{ decision: "allow" }}
      submit={`Add ${where}`}
      onSubmit={add}
      more={
        <button type="button" onClick={() => setOpen(false)}>
          Cancel
        </button>
      }
    />
  );
}
