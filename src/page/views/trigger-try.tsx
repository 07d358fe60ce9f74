// Shows the run that a delivery would start, without starting it.

import { useState } from "preact/hooks";
import type { Body, PlannedDelivery } from "../../client/client.ts";
import { Plain, Pre, visible } from "../components.tsx";
import { client } from "../session.ts";
import { triggerTexts } from "../texts/triggers.ts";
import { FieldsForm } from "./fields.tsx";

export function TryTrigger({ id }: { id: string }) {
  const [planned, setPlanned] = useState<PlannedDelivery>();
  const words = triggerTexts();
  const { names, fields } = words;
  return (
    <details>
      <summary>{words.try}</summary>
      <p class="note">{words.tryAbout}</p>
      <FieldsForm
        fields={[
          { name: "body", kind: "json", required: true, title: names.body, description: fields.body },
          {
            name: "headers",
            kind: "pairs",
            required: false,
            title: names.headers,
            description: fields.headers,
          },
        ]}
        values={{ body: {} }}
        submit={words.show}
        onSubmit={async (delivery) => {
          setPlanned(undefined);
          // The server validates every field.
          setPlanned(await client.triggers.test(id, delivery as Body<"POST /triggers/{trigger_id}/test">));
        }}
      />
      <div role="status">{planned && <Planned planned={planned} />}</div>
    </details>
  );
}

function Planned({
  planned: { ignored, agent = "", input = "", thread_id = "" },
}: {
  planned: PlannedDelivery;
}) {
  const words = triggerTexts();
  if (ignored !== undefined) return <p>{words.ignored(visible(ignored))}</p>;
  return (
    <>
      <p>{words.planned}</p>
      <dl class="facts">
        <dt>{words.agent}</dt>
        <dd>
          <Plain>{agent}</Plain>
        </dd>
        <dt>{words.thread}</dt>
        <dd>
          <Plain>{thread_id}</Plain>
        </dd>
      </dl>
      <Pre>{visible(input)}</Pre>
    </>
  );
}
