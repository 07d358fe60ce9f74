// Calls a registered tool once, with arguments that the user enters.

import { useState } from "preact/hooks";
import type { HttpTool, TriedTool } from "../../client/client.ts";
import { Copy, Pre, Problem, visible } from "../components.tsx";
import { type Field, fieldsOf } from "../form.ts";
import { duration } from "../numbers.ts";
import { client } from "../session.ts";
import { toolTexts } from "../texts/tools.ts";
import { textOf } from "../transcript.ts";
import { FieldsForm } from "./fields.tsx";

export function TryTool({ tool }: { tool: HttpTool }) {
  const [tried, setTried] = useState<TriedTool>();
  const words = toolTexts();
  const own = fieldsOf(tool.parameters);
  const all: Field = { name: "args", kind: "json", required: true };
  const call = async (args: Record<string, unknown>) => {
    setTried(undefined);
    setTried(await client.tools.try(tool.name, args));
  };
  return (
    <section aria-label={words.tryOf(visible(tool.name))}>
      <h3>{words.try}</h3>
      <p class="note">{words.tryAbout}</p>
      {own.length > 0 ? (
        <FieldsForm fields={own} values={{}} prefix="args" submit={words.call} onSubmit={call} />
      ) : (
        <FieldsForm
          fields={[all]}
          values={{ args: {} }}
          submit={words.call}
          onSubmit={({ args }) => call(args as Record<string, unknown>)}
        />
      )}
      <div role="status">{tried && <TriedResult tried={tried} />}</div>
    </section>
  );
}

function TriedResult({ tried: { output, error, duration_ms } }: { tried: TriedTool }) {
  const words = toolTexts();
  const text = textOf(output);
  return (
    <>
      <p>
        {error === undefined ? words.answered(duration(duration_ms)) : words.failed(duration(duration_ms))}
        {text !== "" && <Copy text={() => text} />}
      </p>
      {error !== undefined && <Problem>{visible(error)}</Problem>}
      {text !== "" && <Pre>{visible(text)}</Pre>}
    </>
  );
}
