// Registers a tool of the tenant, with fields or as the API's JSON. The tool's secret is shown only once.

import { useState } from "preact/hooks";
import type { RegisteredHttpTool } from "../../client/client.ts";
import { Copy, Dialog, Plain } from "../components.tsx";
import type { Field } from "../form.ts";
import { client } from "../session.ts";
import { toolTexts } from "../texts/tools.ts";
import { t } from "../texts.ts";
import { FieldsForm } from "./fields.tsx";

export function toolFields(): Field[] {
  const { form } = t();
  const tools = toolTexts();
  const field = (name: keyof typeof tools.fields, kind: Field["kind"], required = false): Field => ({
    name,
    kind,
    required,
    description: tools.fields[name],
  });
  const choices = new Map<string, unknown>([
    [form.yes, true],
    [form.no, false],
  ]);
  return [
    field("name", "text", true),
    field("description", "long", true),
    field("callback_url", "text", true),
    field("parameters", "json", true),
    field("headers", "pairs"),
    field("timeout_ms", "number"),
    { ...field("idempotent", "choice"), choices },
    field("annotations", "json"),
    field("agents", "list"),
  ];
}

const jsonField = (): Field[] => [
  { name: "tool", kind: "json", required: true, description: toolTexts().fields.tool },
];

const EMPTY = { parameters: { type: "object", properties: {}, required: [] } };

/** `names` contains the names of existing tools. A new tool with one of these names replaces the existing one. */
export function NewTool({ names, onRegistered }: { names: readonly string[]; onRegistered: () => void }) {
  const [mode, setMode] = useState<"closed" | "fields" | "json">("closed");
  /** The name of the existing tool that the user was asked about. Submitting the same name again replaces it. */
  const [asked, setAsked] = useState<string>();
  const [registered, setRegistered] = useState<RegisteredHttpTool>();
  const words = toolTexts();
  const register = async (tool: unknown) => {
    const name = String((tool as { name?: unknown }).name);
    if (names.includes(name) && asked !== name) {
      setAsked(name);
      throw new Error(words.exists(name));
    }
    setAsked(undefined);
    // The server validates every field.
    setRegistered(await client.tools.put(tool as Parameters<typeof client.tools.put>[0]));
    setMode("closed");
    onRegistered();
  };
  const buttons = (
    <>
      <button type="button" onClick={() => setMode(mode === "json" ? "fields" : "json")}>
        {mode === "json" ? words.withFields : words.asJson}
      </button>
      <button type="button" onClick={() => setMode("closed")}>
        {t().shared.cancel}
      </button>
    </>
  );
  return (
    <>
      {mode === "closed" && (
        <button type="button" onClick={() => setMode("fields")}>
          + {words.new}
        </button>
      )}
      {mode === "fields" && (
        <FieldsForm
          key="fields"
          fields={toolFields()}
          values={EMPTY}
          submit={words.register}
          onSubmit={register}
          more={buttons}
        />
      )}
      {mode === "json" && (
        <FieldsForm
          key="json"
          fields={jsonField()}
          values={{ tool: { name: "", description: "", callback_url: "https://", ...EMPTY } }}
          submit={words.register}
          onSubmit={({ tool }) => register(tool)}
          more={buttons}
        />
      )}
      {registered && (
        <Dialog title={words.isRegistered} onClose={() => setRegistered(undefined)}>
          <p>
            <Plain>{registered.name}</Plain>
          </p>
          <p>{words.secretOf}</p>
          <p class="row">
            <code class="secret">{registered.secret}</code>
            <Copy text={() => registered.secret} />
          </p>
        </Dialog>
      )}
    </>
  );
}
