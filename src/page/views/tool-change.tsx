// Changes a registered tool. Its secret stays the same, and only changed fields are sent.

import { useState } from "preact/hooks";
import type { HttpTool } from "../../client/client.ts";
import { client } from "../session.ts";
import { toolTexts } from "../texts/tools.ts";
import { t } from "../texts.ts";
import { FieldsForm } from "./fields.tsx";
import { toolFields } from "./tool-form.tsx";

type ToolChanges = Parameters<typeof client.tools.change>[1];

export function ChangeTool({ tool, onChanged }: { tool: HttpTool; onChanged: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const words = toolTexts();
  if (!isOpen)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        {words.change}
      </button>
    );
  const { name: _, header_names: __, created_at: ___, ...now } = tool;
  const change = async (values: Record<string, unknown>) => {
    // The server validates every field.
    await client.tools.change(tool.name, changedIn(values, now) as ToolChanges);
    setOpen(false);
    onChanged();
  };
  return (
    <section>
      <h3>{words.change}</h3>
      <p class="note">{words.changeAbout}</p>
      <FieldsForm
        fields={toolFields().filter(({ name }) => name !== "name")}
        values={now}
        submit={t().shared.save}
        onSubmit={change}
        more={
          <button type="button" onClick={() => setOpen(false)}>
            {t().shared.cancel}
          </button>
        }
      />
    </section>
  );
}

/** The server hides the query of a URL. An unedited URL is not sent, so its query does not change. */
function changedIn(
  values: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): object {
  return Object.fromEntries(
    Object.entries(values).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(now[name])),
  );
}
