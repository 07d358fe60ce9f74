// Registers a tool of the tenant: with fields, or as the JSON that the API takes. The secret is shown once.

import { useState } from "preact/hooks";
import type { RegisteredHttpTool } from "../../client/client.ts";
import { Copy, Dialog, Plain } from "../components.tsx";
import type { Field } from "../form.ts";
import { client } from "../session.ts";
import { FieldsForm } from "./fields.tsx";

const FIELDS: readonly Field[] = [
  { name: "name", kind: "text", required: true, description: "As the model calls it." },
  {
    name: "description",
    kind: "long",
    required: true,
    description: "The model reads it: what the tool does, and when to call it.",
  },
  { name: "callback_url", kind: "text", required: true, description: "Where each call is POSTed to." },
  { name: "parameters", kind: "json", required: true, description: "JSON Schema of the arguments." },
  {
    name: "headers",
    kind: "pairs",
    required: false,
    description: "Sent with each call and never shown again: Name: value, one a line.",
  },
  { name: "timeout_ms", kind: "number", required: false, description: "For one call, with its repetitions." },
  {
    name: "idempotent",
    kind: "choice",
    choices: new Map<string, unknown>([
      ["yes", true],
      ["no", false],
    ]),
    required: false,
    description: "Whether a second call with the same Idempotency-Key does no harm.",
  },
  {
    name: "annotations",
    kind: "json",
    required: false,
    description: "For permissions: read_only, destructive, category, requires_permission.",
  },
  {
    name: "agents",
    kind: "list",
    required: false,
    description: "Agents that may use it: names and globs, one a line.",
  },
];
const AS_JSON: readonly Field[] = [
  { name: "tool", kind: "json", required: true, description: "As POST /tools takes it." },
];

const EMPTY = { parameters: { type: "object", properties: {}, required: [] } };

/** `names`: those that exist, which are replaced. */
export function NewTool({ names, onRegistered }: { names: readonly string[]; onRegistered: () => void }) {
  const [mode, setMode] = useState<"closed" | "fields" | "json">("closed");
  /** The name of a tool that the next attempt replaces. */
  const [asked, setAsked] = useState<string>();
  const [registered, setRegistered] = useState<RegisteredHttpTool>();
  const register = async (tool: unknown) => {
    const name = String((tool as { name?: unknown }).name);
    if (names.includes(name) && asked !== name) {
      setAsked(name);
      throw new Error(`There is a tool \`${name}\`. Register once more to replace it: its secret changes.`);
    }
    setAsked(undefined);
    // The server checks every field.
    setRegistered(await client.tools.put(tool as Parameters<typeof client.tools.put>[0]));
    setMode("closed");
    onRegistered();
  };
  const buttons = (
    <>
      <button type="button" onClick={() => setMode(mode === "json" ? "fields" : "json")}>
        {mode === "json" ? "With fields" : "As JSON"}
      </button>
      <button type="button" onClick={() => setMode("closed")}>
        Cancel
      </button>
    </>
  );
  return (
    <>
      {mode === "closed" && (
        <button type="button" onClick={() => setMode("fields")}>
          + Register a tool
        </button>
      )}
      {mode === "fields" && (
        <FieldsForm
          key="fields"
          fields={FIELDS}
          values={EMPTY}
          submit="Register"
          onSubmit={register}
          more={buttons}
        />
      )}
      {mode === "json" && (
        <FieldsForm
          key="json"
          fields={AS_JSON}
          values={{ tool: { name: "", description: "", callback_url: "https://", ...EMPTY } }}
          submit="Register"
          onSubmit={({ tool }) => register(tool)}
          more={buttons}
        />
      )}
      {registered && (
        <Dialog title="The tool is registered" onClose={() => setRegistered(undefined)}>
          <p>
            With this secret your endpoint verifies the calls of <Plain>{registered.name}</Plain>. It is shown
            only now.
          </p>
          <p class="row">
            <code class="secret">{registered.secret}</code>
            <Copy text={() => registered.secret} />
          </p>
        </Dialog>
      )}
    </>
  );
}
